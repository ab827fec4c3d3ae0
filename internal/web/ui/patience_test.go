package ui

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/inspect"
	"kumo/internal/vfs"
)

// A fixed source has an answer of its own to what is asked here.
type fixed struct{ inspect.Source }

func (fixed) Status(context.Context) (*inspect.Status, error) {
	return &inspect.Status{State: inspect.Running, Time: time.Now()}, nil
}

func (fixed) Explain(_ context.Context, url string) (*inspect.Explanation, error) {
	return &inspect.Explanation{URL: url, Known: &inspect.Known{URL: url}, Page: &inspect.Page{Status: 200}}, nil
}

// quiet logs nothing.
func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// One crawl's disk stalls: who asks for it is told so in time, all others are answered at once, and so is it when the
// disk does.
func TestADiskThatStallsIsItsCrawlsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stalls := make(chan struct{})
		dir := t.TempDir()
		var crawls []Crawl
		for name, wait := range map[string]func(string){"good": func(string) {}, "dead": func(string) { <-stalls }} {
			at := filepath.Join(dir, name)
			for _, err := range []error{os.Mkdir(at, 0o755), os.WriteFile(filepath.Join(at, "pages.jsonl"), []byte("{}\n"), 0o600)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			crawls = append(crawls, Crawl{Dir: at, Open: func(context.Context) (*inspect.View, error) {
				return inspect.NewView(fixed{}, at, vfs.NewSlow(vfs.OS, wait), true, func() error { return nil }), nil
			}})
		}
		s := New(Config{Crawls: crawls, Log: quiet()})
		defer s.Close()
		ask := func(path string) (*httptest.ResponseRecorder, time.Duration) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.Host = "localhost"
			w, begin := httptest.NewRecorder(), time.Now()
			s.ServeHTTP(w, r)
			return w, time.Since(begin)
		}
		explain := func(crawl string) string { return "/api/v1/crawls/" + crawl + "/explain?url=http://h.test/" }
		answers := make(chan *httptest.ResponseRecorder, 2*maxAsks)
		for range 2 * maxAsks { // more than are answered at once
			go func() {
				w, _ := ask(explain("dead"))
				answers <- w
			}()
		}
		synctest.Wait()
		time.Sleep(time.Second)
		wantSoon := func(path, want string) {
			t.Helper()
			if w, took := ask(path); w.Code != http.StatusOK || took > 0 || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d after %v: %s", path, w.Code, took, w.Body)
			}
		}
		wantSoon(explain("good"), `"fetched"`)
		wantSoon("/crawls/good", "Overview")
		w, took := ask("/api/v1/crawls")
		if text := w.Body.String(); w.Code != http.StatusOK || took > listPatience || !strings.Contains(text, `"name":"good","folder":"`+crawls[0].Dir[:1]) ||
			!strings.Contains(text, `"state":"running"`) || !strings.Contains(text, `"error"`) {
			t.Errorf("the list: %d after %v: %s", w.Code, took, text)
		}
		for range 2 * maxAsks {
			if w := <-answers; w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
		}
		w, took = ask("/crawls/dead/urls?url=http://h.test/")
		if text := w.Body.String(); w.Code != http.StatusServiceUnavailable || took > 0 || !strings.Contains(text, "The crawl dead does not answer") ||
			!strings.Contains(text, "its disk may hang") {
			t.Errorf("%d after %v: %s", w.Code, took, text)
		}
		wantSoon(explain("good"), `"fetched"`)
		close(stalls)
		synctest.Wait()
		wantSoon(explain("dead"), `"fetched"`)
	})
}

// However many crawls are asked for, few stay open.
func TestFewCrawlsStayOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		open, most := map[string]bool{}, 0
		var mu = make(chan struct{}, 1)
		var crawls []Crawl
		for range n {
			dir := t.TempDir()
			crawls = append(crawls, Crawl{Dir: dir, Open: func(context.Context) (*inspect.View, error) {
				mu <- struct{}{}
				defer func() { <-mu }()
				open[dir] = true
				most = max(most, len(open))
				return inspect.NewView(fixed{}, dir, vfs.OS, true, func() error {
					mu <- struct{}{}
					defer func() { <-mu }()
					delete(open, dir)
					return nil
				}), nil
			}})
		}
		s := New(Config{Crawls: crawls, Log: quiet()})
		defer s.Close()
		if all := s.entries(t.Context()); len(all) != n || all[n-1].State == nil {
			t.Errorf("%d crawls are listed", len(all))
		}
		if most > maxIdle+5 || len(open) > maxIdle { // four are asked at once, one is about to close
			t.Errorf("%d were open at once, %d are", most, len(open))
		}
		time.Sleep(idleFor)
		synctest.Wait()
		if len(open) > 0 {
			t.Errorf("%d stay open", len(open))
		}
	})
}
