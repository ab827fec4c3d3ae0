package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/stats"
)

// A fake has an unlimited number of known URLs, until it fails.
type fake struct{ failAt int }

func (f fake) Explain(_ context.Context, url string) (*Explanation, error) {
	if url == "bad" {
		return nil, errors.New("no URL")
	}
	return &Explanation{URL: url, Known: &Known{URL: url, Since: time.Unix(1, 0).UTC()}}, nil
}

func (f fake) Hosts(_ context.Context, n int) iter.Seq2[Host, error] {
	return func(yield func(Host, error) bool) {
		for i := range n {
			if !yield(Host{Key: fmt.Sprint("h", i)}, nil) {
				return
			}
		}
	}
}

func (f fake) Status(context.Context) (*Status, error) {
	x := &Status{State: Running, Active: 3, Forecast: "about 2 min"}
	x.Crawl, x.Pages = "news", 7
	return x, nil
}

func (f fake) Queue(_ context.Context, host string, n int) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) { yield(Item{URL: fmt.Sprint(host, " ", n)}, nil) }
}

func (f fake) HostsFrom(_ context.Context, prefix, after string, n int) iter.Seq2[Host, error] {
	return func(yield func(Host, error) bool) { yield(Host{Key: prefix + after, Waiting: n}, nil) }
}

func (f fake) SeenFrom(_ context.Context, prefix, after string, n int) iter.Seq2[Known, error] {
	return func(yield func(Known, error) bool) { yield(Known{URL: prefix + after, Depth: n}, nil) }
}

func (f fake) Curves(context.Context) (*stats.Curves, error) {
	return &stats.Curves{All: []stats.Point{{Pages: 7}}}, nil
}

func (f fake) Pause(_ context.Context, on bool) error {
	if on {
		return nil
	}
	return errors.New("it is not paused")
}

func (f fake) Stop(context.Context) error { return nil }

func (f fake) Add(_ context.Context, urls []string) (int, error) { return len(urls), nil }

// Hosts and URLs from a given one on, curves and commands are transmitted unchanged.
func TestWhatAPageAsks(t *testing.T) {
	_, file := openServer(t, fake{})
	c := dial(t, file)
	for h, err := range c.HostsFrom(t.Context(), "a", "b&c", 3) {
		if err != nil || h.Key != "ab&c" || h.Waiting != 3 {
			t.Errorf("%+v, %v", h, err)
		}
	}
	for k, err := range c.SeenFrom(t.Context(), "http://", "x", 4) {
		if err != nil || k.URL != "http://x" || k.Depth != 4 {
			t.Errorf("%+v, %v", k, err)
		}
	}
	if x, err := c.Curves(t.Context()); err != nil || len(x.All) != 1 || x.All[0].Pages != 7 {
		t.Errorf("%+v, %v", x, err)
	}
	if err := c.Pause(t.Context(), true); err != nil {
		t.Error(err)
	}
	if err := c.Pause(t.Context(), false); err == nil || err.Error() != "it is not paused" {
		t.Errorf("error %v", err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if n, err := c.Add(t.Context(), []string{"http://a/", "http://b/"}); n != 2 || err != nil {
		t.Error(n, err)
	}
}

func (f fake) Top(context.Context, int, bool) iter.Seq2[Important, error] {
	return func(yield func(Important, error) bool) { yield(Important{URL: "http://h.test/", Importance: 2}, nil) }
}

func (f fake) Seen(_ context.Context, prefix string, _ int) iter.Seq2[Known, error] {
	return func(yield func(Known, error) bool) {
		for i := 0; ; i++ {
			if i == f.failAt {
				yield(Known{}, errors.New("the disk is broken"))
				return
			}
			if !yield(Known{URL: fmt.Sprint(prefix, i)}, nil) {
				return
			}
		}
	}
}

func openServer(t *testing.T, src Source) (*Server, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "endpoint")
	s, err := Listen(file, src)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), <-served); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file is left: %v", err)
		}
	})
	return s, file
}

func dial(t *testing.T, file string) *Client {
	t.Helper()
	c, err := Dial(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestAnswersComeAsTheyAreGiven(t *testing.T) {
	_, file := openServer(t, fake{failAt: 2000})
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	c := dial(t, file)
	const url = "https://h.example/?a=1&b=<2>"
	if x, err := c.Explain(t.Context(), url); err != nil || x.URL != url || !x.Known.Since.Equal(time.Unix(1, 0)) ||
		x.Page != nil {
		t.Errorf("%+v, %v", x, err)
	}
	if _, err := c.Explain(t.Context(), "bad"); err == nil || err.Error() != "no URL" {
		t.Errorf("error %v", err)
	}
	if x, err := c.Status(t.Context()); err != nil || x.State != Running || x.Crawl != "news" || x.Pages != 7 ||
		x.Active != 3 || x.Forecast != "about 2 min" {
		t.Errorf("%+v, %v", x, err)
	}
	n := 0
	for h, err := range c.Hosts(t.Context(), 3) {
		if err != nil || h.Key != fmt.Sprint("h", n) {
			t.Errorf("%+v, %v", h, err)
		}
		n++
	}
	for it, err := range c.Queue(t.Context(), "h.example:80", 7) {
		if err != nil || it.URL != "h.example:80 7" {
			t.Errorf("%+v, %v", it, err)
		}
		n++
	}
	var last error
	for _, err := range c.Seen(t.Context(), "x", 1) {
		last = err
		n++
	}
	if n != 3+1+2001 || last == nil || last.Error() != "the disk is broken" {
		t.Errorf("%d values, %v", n, last)
	}
}

func TestWithoutTheTokenNobodyIsAnswered(t *testing.T) {
	s, file := openServer(t, fake{})
	for _, token := range []string{"", "Bearer ", "Bearer x" + s.token} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.listen.Addr().String()+"/hosts?n=1",
			nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: status %d", token, resp.StatusCode)
		}
	}
	rewrite(t, file, func(c *endpoint) { c.Token = "another" })
	if _, err := Dial(t.Context(), file); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "token") {
		t.Errorf("error %v", err)
	}
}

func rewrite(t *testing.T, file string, change func(*endpoint)) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c endpoint
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	change(&c)
	if text, err = json.Marshal(c); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFilesThatSayNothing(t *testing.T) {
	_, file := openServer(t, fake{})
	for _, c := range []struct {
		say    string
		change func(*endpoint)
		want   error
		words  string
	}{
		{"another machine's", func(c *endpoint) { c.Host = "elsewhere" }, ErrOtherMachine, "on elsewhere"},
		{"another kumo's", func(c *endpoint) { c.Version = 9 }, nil, "version 9"},
		{"an address elsewhere", func(c *endpoint) { c.Address = "192.0.2.1:80" }, nil, "not an address of this machine"},
		{"a name", func(c *endpoint) { c.Address = "localhost:80" }, nil, "not an address of this machine"},
		{"nobody there", func(c *endpoint) { c.Address = "127.0.0.1:1" }, ErrUnreachable, "127.0.0.1:1"},
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rewrite(t, file, c.change)
		if _, err := Dial(t.Context(), file); err == nil || c.want != nil && !errors.Is(err, c.want) ||
			!strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", c.say, err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Dial(t.Context(), file+"x"); !errors.Is(err, ErrUnreachable) {
		t.Errorf("no file: %v", err)
	}
}

// A stopper is a crawl that ends while it answers the request to stop it.
type stopper struct {
	fake
	server *Server
	ended  chan error
}

func (s *stopper) Stop(ctx context.Context) error {
	go func() { s.ended <- s.server.Close() }()
	<-ctx.Done() // the server is closing
	return nil
}

// The request that ends a crawl is answered.
func TestStopIsAnswered(t *testing.T) {
	src := &stopper{ended: make(chan error, 1)}
	s, file := openServer(t, src)
	src.server = s
	if err := dial(t, file).Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-src.ended; err != nil {
		t.Error(err)
	}
}

// A crawl may end during a response. The client notices that the response is incomplete, and the crawl waits for a slow
// reader for a moment only.
func TestTheCrawlEndsWhileItIsAsked(t *testing.T) {
	s, file := openServer(t, fake{failAt: -1})
	c := dial(t, file)
	n := 0
	var last error
	for _, err := range c.Seen(t.Context(), "x", 1) {
		if n++; n == 1000 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		last = err
	}
	if last == nil {
		t.Error("the end was not told from all there is")
	}
	if _, err := c.Explain(t.Context(), "x"); !errors.Is(err, ErrUnreachable) {
		t.Errorf("error %v", err)
	}
}

func TestFates(t *testing.T) {
	known, waits, host := &Known{State: "known"}, &Item{}, &Host{Waiting: 1}
	for _, c := range []struct {
		x    Explanation
		want Outcome
	}{
		{Explanation{Scope: Scope{In: true, Rule: "scope"}}, Unknown},
		{Explanation{Scope: Scope{Rule: "scope"}}, OutOfScope},
		{Explanation{Known: known, Waits: waits, Active: true}, InFlight},
		{Explanation{Known: known, Waits: waits, Place: 1, Host: host}, Waiting},
		{Explanation{Known: known, Waits: waits, Place: 1, Host: &Host{Parked: true}}, Parked},
		{Explanation{Known: known, Waits: &Item{Tries: 1}, Place: 1}, Retry},
		{Explanation{Known: known, Waits: waits, Running: true}, Abandoned},
		{Explanation{Known: known, Waits: waits, Place: 1, GivenUp: "refused"}, Abandoned},
		{Explanation{Known: known, Waits: waits, Place: 1, Skipped: &Skip{Rule: "failed"}}, Abandoned},
		{Explanation{Known: known, Waits: waits, Place: 1, Skipped: &Skip{Rule: "failed"}, Running: true}, Waiting},
		{Explanation{Known: known, Host: &Host{Waiting: 20_000}}, Waiting},
		{Explanation{Known: known, Page: &Page{Status: 200}}, Fetched},
		{Explanation{Known: known, Page: &Page{Status: 301, Final: "x"}}, Redirected},
		{Explanation{Known: known, Page: &Page{Status: 200, Revisit: "x"}}, Duplicate},
		{Explanation{Known: known, Page: &Page{Status: 404, Revisit: "x"}}, Error},
		{Explanation{Known: known, Page: &Page{Status: 500}}, Error},
		{Explanation{Known: known, Page: &Page{Status: 302, Revisit: "x"}}, Fetched},
		{Explanation{Known: known, Page: &Page{Status: 304, Revisit: "x"}}, Fetched},
		{Explanation{Known: known, Page: &Page{}, Skipped: &Skip{Rule: "failed"}}, Failed},
		{Explanation{Known: known, Skipped: &Skip{Rule: "robots"}}, Excluded},
		{Explanation{Known: known, Merge: &Skip{}, Aside: &Skip{}}, Undecided},
		{Explanation{Known: known, Aside: &Skip{Rule: "depth"}}, Deferred},
		{Explanation{Known: known}, Unaccounted},
		{Explanation{Unread: time.Second}, Unread},
		{Explanation{Unread: time.Second, Waits: waits, Place: 1}, Waiting},
	} {
		if c.x.SetOutcome(); c.x.Fate != c.want {
			t.Errorf("%+v: %s, want %s", c.x, c.x.Fate, c.want)
		}
	}
}

func TestWhoBroughtItIn(t *testing.T) {
	again := &Page{Status: 304, Type: "text/html", Recrawl: "unchanged"}
	linked := &Page{Status: 200, From: "http://a/", Depth: 1}
	top, deep := &Known{}, &Known{Depth: 1}
	for _, c := range []struct {
		x    Explanation
		from string
		seed bool
	}{
		{Explanation{Known: top, Waits: &Item{}}, "", true},
		{Explanation{Known: top, Page: &Page{Status: 200, Type: "text/html"}, First: &Page{Status: 200}}, "", true},
		{Explanation{Known: top, Page: again, First: &Page{Status: 200}}, "", true},
		{Explanation{Known: deep, Page: again, First: linked}, "http://a/", false},
		// The target of a redirect.
		{Explanation{Known: top, Page: again, First: &Page{Status: 200, From: "http://b/"}}, "http://b/", false},
		{Explanation{Known: deep, Page: again, First: linked, Waits: &Item{Depth: 1}}, "http://a/", false},
		{Explanation{Known: deep, Page: again}, "", false},
		{Explanation{Known: top, Page: again}, "", false},
		{Explanation{Known: top, Page: &Page{}, Skipped: &Skip{Rule: "failed"}}, "", true},
		{Explanation{Known: deep, Aside: &Skip{From: "http://a/"}}, "http://a/", false},
	} {
		if c.x.SetOutcome(); c.x.From != c.from || c.x.Seed != c.seed {
			t.Errorf("%+v: from %q, seed %v; want %q, %v", c.x, c.x.From, c.x.Seed, c.from, c.seed)
		}
	}
}

// A settable has a setting that others change while it is being set.
type settable struct {
	fake
	now    []string
	others int // pending conflicting changes
}

func (s *settable) Set(_ context.Context, changes []Setting) ([]Setting, error) {
	if s.others > 0 {
		s.others--
		s.now = append(s.now, fmt.Sprint("other", s.others))
	}
	if was := changes[0].Was; was != nil && !slices.Equal(was, s.now) {
		return nil, ErrConflict
	}
	s.now = changes[0].Values
	return []Setting{{Key: changes[0].Key}}, nil
}

// No change is lost if several are made at the same time, even by another process.
func TestTune(t *testing.T) {
	for _, others := range []int{0, 1, 3, maxTries} {
		src := &settable{others: others}
		_, file := openServer(t, src)
		c := dial(t, file)
		_, _, err := Tune(t.Context(), c, func() (map[string][]string, error) {
			return map[string][]string{"block": src.now}, nil
		},
			func(now map[string][]string) ([]Setting, error) {
				return []Setting{{Key: "block", Values: append(slices.Clone(now["block"]), "mine")}}, nil
			})
		if others == maxTries {
			if !errors.Is(err, ErrConflict) {
				t.Errorf("changed each time: %v", err)
			}
		} else if err != nil || len(src.now) != others+1 || src.now[others] != "mine" {
			t.Errorf("%q, %v", src.now, err)
		}
	}
}
