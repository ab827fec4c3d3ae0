package lookup_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kumo/internal/app/job"
	"kumo/internal/app/lookup"
	"kumo/internal/app/wire"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/state/store/warc"
)

// crawled returns the archive of a small crawl with small WARC files.
func crawled(t *testing.T, j *job.Job) *lookup.Archive {
	t.Helper()
	j.WARCSize = 20_000
	c, err := wire.Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return lookup.New(vfs.OS, j.Dir, nil)
}

func everything(t *testing.T, a *lookup.Archive, f lookup.Filter, n int) (all []lookup.Record) {
	t.Helper()
	for cursor := int64(lookup.Last); ; {
		some, next, err := a.List(t.Context(), f, cursor, n)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
		if cursor = next; next == 0 {
			return all
		}
	}
}

// Paged lists contain each line once, newest first; fetched pages are found by their URL, with links and text.
func TestRecordsOfACrawl(t *testing.T) {
	t.Parallel()
	s := jobtest.Serve(t, synthweb.Clean(1, 4, 80))
	j := jobtest.For(s, t.TempDir())
	a := crawled(t, j)
	text, err := os.ReadFile(filepath.Join(j.Dir, "pages.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(text)))
	for _, n := range []int{1, 7, 10_000} {
		all := everything(t, a, lookup.Filter{}, n)
		if len(all) != len(lines) {
			t.Fatalf("%d records %d at a time, %d lines", len(all), n, len(lines))
		}
		for i, r := range all {
			if line := lines[len(lines)-1-i]; !strings.HasPrefix(string(text[r.ID:]), line) ||
				!strings.Contains(line, fmt.Sprintf(`"status":%d,`, r.Status)) {
				t.Fatalf("record %d is %+v, the line %s", i, r, line)
			}
		}
	}
	answers, texts := 0, 0
	for i, r := range everything(t, a, lookup.Filter{}, 100) {
		if one, err := a.Record(r.ID); err != nil || !reflect.DeepEqual(*one, r) {
			t.Fatalf("%+v, %v, want %+v", one, err, r)
		}
		if i%3 > 0 || r.Status == 0 {
			continue
		}
		resp, err := a.Answer(t.Context(), &r)
		if err != nil {
			t.Fatalf("%s: %v", r.URL, err)
		}
		answers++
		if _, n, err := lookup.Links(resp, 5); err != nil || n != r.Links {
			t.Errorf("%s: %d links, %d when it was fetched, %v", r.URL, n, r.Links, err)
		}
		if x, err := lookup.TextOf(resp); err != nil {
			t.Errorf("%s: %v", r.URL, err)
		} else if x.Text != "" {
			texts++
		}
		if r.Status >= 500 || r.Status == 429 {
			continue
		}
		if again, err := a.AnswerOf(t.Context(), r.URL); err != nil || again.Status != r.Status ||
			string(again.Body) != string(resp.Body) {
			t.Errorf("%s by its URL: %v", r.URL, err)
		}
	}
	if answers < 20 || texts < 10 {
		t.Errorf("%d answers, %d texts", answers, texts)
	}
	if points, err := a.Curve(int64(len(lines))); err != nil || len(points) < 10 ||
		points[len(points)-1].Pages < int64(len(lines))*9/10 {
		t.Errorf("the curve has %d points: %v", len(points), err)
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"/": `<a href=/gone>1</a> <a href=/b/1>2</a> <a href=/t.txt>3</a> <a href=/b/copy>4</a>`,
		"/b/1": "<p>one and the same", "/b/copy": "<p>one and the same", "/t.txt": "plain"}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if !strings.HasSuffix(r.URL.Path, ".txt") {
			w.Header().Set("Content-Type", "text/html")
		}
		_, _ = w.Write([]byte(body))
	}))
	defer site.Close()
	j := &job.Job{Dir: t.TempDir(), Name: "test", Seeds: []string{site.URL + "/"}, Scope: weburl.ScopeHost}
	j.Crawl.Depth = -1
	a := crawled(t, j)
	host := strings.TrimPrefix(site.URL, "http://")
	for want, f := range map[string]lookup.Filter{
		"404: /gone": {Status: "404"}, "4xx: /gone": {Status: "4xx"}, "text: /t.txt": {Type: "text/plain", Status: "200"},
		"prefix: /b/1 /b/copy": {Prefix: host + "/b/"}, "url: /t.txt": {Prefix: site.URL + "/t"},
		"none:": {Prefix: "elsewhere"},
	} {
		if err := f.Check(); err != nil {
			t.Error(err)
		}
		name, _, _ := strings.Cut(want, ":")
		var paths []string
		for _, r := range everything(t, a, f, 2) {
			paths = append(paths, strings.TrimPrefix(r.URL, site.URL))
		}
		slices.Sort(paths)
		if got := strings.TrimSpace(name + ": " + strings.Join(paths, " ")); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for _, bad := range []string{"xx", "44xx", "abc", "1234", "-1"} {
		if f := (lookup.Filter{Status: bad}); f.Check() == nil {
			t.Errorf("status %q is taken", bad)
		}
	}
	copied := everything(t, a, lookup.Filter{Prefix: host + "/b/"}, 10)[0]
	if resp, err := a.Answer(t.Context(), &copied); err != nil || copied.Revisit == "" ||
		string(resp.Body) != "<p>one and the same" {
		t.Errorf("%+v: %v", copied, err)
	}
	if _, err := a.AnswerOf(t.Context(), site.URL+"/nowhere"); !errors.Is(err, lookup.ErrNoAnswer) {
		t.Errorf("a URL that was not fetched: %v", err)
	}
	for _, id := range []int64{-5, 1, 1 << 40} {
		if r, err := a.Record(id); !errors.Is(err, lookup.ErrNoRecord) {
			t.Errorf("record %d: %+v, %v", id, r, err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := a.List(gone, lookup.Filter{}, lookup.Last, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("who has left is told %v", err)
	}
}

// Queries end whatever the files contain.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := lookup.New(vfs.OS, dir, nil)
	if all, next, err := a.List(t.Context(), lookup.Filter{}, lookup.Last, 5); len(all) > 0 || next != 0 || err != nil {
		t.Error(all, next, err)
	}
	good := `{"url":"http://a.test/","status":200,"time":"2026-01-01T00:00:00Z","warc":"../../etc/x.warc.gz","offset":0}`
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "pages.jsonl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("not json\n" + good + "\n{\"url\":\n" + good)
	all := everything(t, a, lookup.Filter{}, 10)
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	if _, err := a.Answer(t.Context(), &all[0]); !errors.Is(err, lookup.ErrNoAnswer) {
		t.Errorf("a file elsewhere: %v", err)
	}
	write(good + "\n" + strings.Repeat("x", 3<<20) + "\n" + good + "\n")
	if _, _, err := a.List(t.Context(), lookup.Filter{}, lookup.Last, 10); err == nil {
		t.Error("a line without end is taken")
	}
	if points, err := a.Curve(3); err != nil {
		t.Error(points, err)
	}
}

// TestOldKeys: URLs are found in indexes of kumo's first versions, which had other keys.
func TestOldKeys(t *testing.T) {
	t.Parallel()
	s := jobtest.Serve(t, synthweb.Clean(1, 1, 3))
	j := jobtest.For(s, t.TempDir())
	a := crawled(t, j)
	indexes, err := filepath.Glob(filepath.Join(j.Dir, "warc", "*.cdxj"))
	if err != nil || len(indexes) == 0 {
		t.Fatal(indexes, err)
	}
	text, err := os.ReadFile(indexes[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	first, err := warc.ParseIndexLine([]byte(lines[0]))
	if err != nil {
		t.Fatal(err)
	}
	url := first.URL + "%28x"
	_, rest, _ := strings.Cut(strings.ReplaceAll(lines[0], strconv.Quote(first.URL), strconv.Quote(url)), " ")
	lines = append(lines, warc.OldKey(url)+" "+rest)
	slices.Sort(lines)
	if err := os.WriteFile(indexes[0], []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.AnswerOf(t.Context(), url); err != nil {
		t.Error(err)
	}
}
