package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/lookup"
	"kumo/internal/app/wire"
	"kumo/internal/archive/audit"
	"kumo/internal/archive/links"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
)

// A fakeStarter records the crawls that it is asked to start.
type fakeStarter struct {
	started []StartRequest
	every   time.Duration
	err     error
	crawl   Crawl
}

func (f *fakeStarter) Start(_ context.Context, s StartRequest) (Crawl, error) {
	f.started = append(f.started, s)
	return f.crawl, f.err
}

func (f *fakeStarter) Resume(_ context.Context, _ string, s StartRequest) error {
	f.started = append(f.started, s)
	return f.err
}

func (f *fakeStarter) Schedule(string) (Schedule, error) {
	return Schedule{f.every, time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}, nil
}

func (f *fakeStarter) SetSchedule(_ string, every time.Duration) error { f.every = every; return f.err }

// endedCrawl returns a crawl that has ended, with what the page does with its files.
func endedCrawl(t *testing.T) Crawl {
	j := jobtest.For(jobtest.Serve(t, synthweb.Clean(1, 6, 60)), filepath.Join(t.TempDir(), "ended"))
	c, err := wire.Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Run(t.Context())
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	return Crawl{Dir: j.Dir,
		Open: func(ctx context.Context) (*inspect.View, error) {
			return wire.Inspect(ctx, j.Dir, func() (*job.Job, error) { job := *j; return &job, nil })
		},
		Audit: func(ctx context.Context, to string, _ func(string)) (*audit.Summary, error) {
			f, err := links.Open(ctx, links.Config{Dir: j.Dir})
			if err != nil {
				return nil, err
			}
			defer f.Close()
			return audit.WriteCSV(ctx, f, to, "", audit.Limits{})
		},
		Export: func(_ context.Context, form string, w io.Writer) error {
			if form == "csv" {
				return errors.New("no such disk")
			}
			_, err := io.WriteString(w, "archive")
			return err
		}}
}

// TestEndedCrawl looks at the pages of a crawl that is done: its state, the audit, downloads, and the forms that start
// crawls.
func TestEndedCrawl(t *testing.T) {
	c := endedCrawl(t)
	starter := &fakeStarter{}
	b := &bed{log: &lockedLog{}}
	b.ui = New(Config{Crawls: []Crawl{c}, Starter: starter, Log: slog.New(slog.NewTextHandler(b.log, nil))})
	b.Server = httptest.NewServer(b.ui)
	t.Cleanup(b.ui.Close)
	t.Cleanup(b.Close)
	get := func(path string, status int, want ...string) string {
		t.Helper()
		resp, text := b.ask(t, http.MethodGet, path, nil)
		if resp.StatusCode != status {
			t.Errorf("%s: status %d\n%s", path, resp.StatusCode, text)
		}
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s has no %q:\n%s", path, part, text)
			}
		}
		return text
	}
	text := get("/crawls/ended", 200, `<span class="state done"`, "/crawls/ended/start")
	if strings.Contains(text, "stopped") {
		t.Errorf("a crawl that is done is stopped:\n%s", text)
	}
	get("/crawls", 200, `<span class="state done">done</span>`, `href="/start"`)

	for begin := time.Now(); strings.Contains(get("/crawls/ended/audit", 200), "The audit is running"); {
		if time.Since(begin) > time.Minute {
			t.Fatal("the audit does not end")
		}
	}
	get("/crawls/ended/audit", 200, "Audit again", "/crawls/ended/audit/broken/csv")
	get("/crawls/ended/audit/pages", 200, "inlinks", "/crawls/ended/urls?url=")
	get("/crawls/ended/audit/pages?cursor=1000000000", 200, "No URLs with a response")
	get("/crawls/ended/audit/nothing", 404)
	text = get("/crawls/ended/audit/pages/csv", 200)
	if strings.Count(text, "\n") < 10 || !strings.HasPrefix(text, "url,status") {
		t.Errorf("the table is %d bytes", len(text))
	}

	resp, file := b.ask(t, http.MethodGet, "/crawls/ended/download/wacz", nil)
	if file != "archive" || resp.Header.Get("Content-Disposition") != `attachment; filename="ended.wacz"` {
		t.Errorf("%q, %v", file, resp.Header)
	}
	get("/crawls/ended/download/csv", 500, "no such disk")
	get("/crawls/ended/download/exe", 404)
	b.startForms(t, starter, c)
}

func (b *bed) startForms(t *testing.T, starter *fakeStarter, c Crawl) {
	_, form := b.ask(t, http.MethodGet, "/start", nil)
	token := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(form)[1]
	post := func(path string, status int, fields ...string) string {
		t.Helper()
		v := url.Values{"csrf": {token}}
		for i := 0; i < len(fields); i += 2 {
			v.Set(fields[i], fields[i+1])
		}
		last := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		client := &http.Client{CheckRedirect: last}
		resp, err := client.PostForm(b.URL+path, v)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != status {
			t.Errorf("%s %q: status %d\n%s", path, fields, resp.StatusCode, text)
		}
		return string(text)
	}
	post("/start", 403, "csrf", "x", "name", "new", "seeds", "https://example.com/")
	post("/start", 400, "name", "../new", "seeds", "https://example.com/")
	post("/start", 400, "name", "new", "seeds", "--out=/etc")
	if len(starter.started) > 0 {
		t.Fatalf("started: %+v", starter.started)
	}
	starter.err = &StartError{"--limit is <x>"}
	if text := post("/start", 400, "name", "new", "seeds", "https://example.com/", "limit", "x"); !strings.Contains(text,
		"--limit is &lt;x&gt;") || !strings.Contains(text, `value="x"`) {
		t.Errorf("an error shows\n%s", text)
	}
	starter.err, starter.crawl = nil, c
	post("/start", 303, "name", "new", "seeds", "https://example.com/\nhttps://example.org/", "delay", "2s")
	if got := starter.started[1]; fmt.Sprint(got.Seeds) != "[https://example.com/ https://example.org/]" || got.Delay != "2s" {
		t.Errorf("started: %+v", got)
	}
	if _, text := b.ask(t, http.MethodGet, "/crawls", nil); !strings.Contains(text, `href="/crawls/ended-2"`) {
		t.Errorf("the new crawl is not listed:\n%s", text)
	}
	post("/crawls/ended/start", 303, "limit", "7")
	if got := starter.started[2]; got.Limit != "7" {
		t.Errorf("resumed: %+v", got)
	}
	post("/crawls/ended/recurring", 400, "every", "1s")
	post("/crawls/ended/recurring", 303, "every", "24h")
	if _, text := b.ask(t, http.MethodGet, "/crawls/ended", nil); !strings.Contains(text,
		"every 24h, next at 2026-12-01 00:00:00") {
		t.Errorf("the schedule is not shown:\n%s", text)
	}
}

// TestNoStarter refuses to start crawls on a page that does not allow it.
func TestNoStarter(t *testing.T) {
	b := newBed(t)
	for _, path := range []string{"/start", "/crawls/done/start", "/crawls/done/recurring"} {
		if resp, _ := b.ask(t, http.MethodGet, path, nil); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: status %d", path, resp.StatusCode)
		}
	}
}

// TestAuditsRunOneAtATime audits two crawls: the second waits for the first, and all tables are removed at the end.
func TestAuditsRunOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done, end := context.WithCancel(t.Context())
		a, running, dirs := newAudits(done), 0, []string{}
		of := func(name string) *crawl {
			return &crawl{name: name, audit: func(_ context.Context, to string, _ func(string)) (*audit.Summary, error) {
				if running++; running > 1 {
					t.Error("two audits run")
				}
				dirs = append(dirs, to)
				time.Sleep(time.Minute)
				running--
				return &audit.Summary{}, nil
			}}
		}
		one, two, ended := of("one"), of("two"), time.Unix(100, 0)
		if x := a.get(one, time.Time{}, false); x.Running {
			t.Error("the audit of a running crawl starts by itself")
		}
		a.get(one, ended, false)
		a.get(two, ended, false)
		time.Sleep(3 * time.Minute)
		if x := a.get(one, ended, false); x.Running || x.Summary == nil {
			t.Errorf("after its end: %+v", x)
		}
		if x := a.get(two, ended.Add(1), false); !x.Running || x.Summary == nil {
			t.Errorf("after another run of the crawl: %+v", x)
		}
		time.Sleep(3 * time.Minute)
		end()
		a.close()
		if len(dirs) != 3 {
			t.Errorf("%d audits", len(dirs))
		}
		for _, dir := range dirs {
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%s is left", dir)
			}
		}
	})
}

// TestReadRows reads a table in parts, without the marks for spreadsheets.
func TestReadRows(t *testing.T) {
	table := &audit.Table{Columns: []string{"url", "title"}}
	name := filepath.Join(t.TempDir(), "t.csv")
	text := "url,title\nhttp://a/1,'=one\nhttp://a/2,\"two\nlines\"\nhttp://a/3,'quoted'\nnone,http://a/ b\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2, 3, 10} {
		var got []tableCell
		for at, more := int64(lookup.Last), true; more; {
			file, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			rows, next, err := readRows(file, table, at, n)
			if err = errors.Join(err, file.Close()); err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				got = append(got, row...)
			}
			at, more = next, next > 0
		}
		want := []tableCell{{"http://a/1", true}, {"=one", false}, {"http://a/2", true}, {"two\nlines", false},
			{"http://a/3", true}, {"'quoted'", false}, {"none", false}, {"http://a/ b", false}}
		if !slices.Equal(got, want) {
			t.Errorf("%d at once: %v", n, got)
		}
	}
}
