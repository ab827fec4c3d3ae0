package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/base/stats"
)

// An index is the part of OpenSearch that a sink needs.
type index struct {
	*httptest.Server
	mu   sync.Mutex
	docs map[string]int64 // versions
	down bool
}

func newIndex(t *testing.T) *index {
	x := &index{docs: map[string]int64{}}
	x.Server = httptest.NewServer(x)
	t.Cleanup(x.Close)
	return x
}

func (x *index) url() string { return strings.Replace(x.URL, "http", "opensearch", 1) + "/pages" }

func (x *index) has() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.docs)
}

func (x *index) set(down bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.down = down
}

func (x *index) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case strings.HasSuffix(r.URL.Path, "/_bulk"):
		var items []string
		for lines := bufio.NewReader(r.Body); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				break
			}
			var action struct {
				Index struct {
					ID      string `json:"_id"`
					Version int64
				}
			}
			if json.Unmarshal(line, &action) == nil && action.Index.ID != "" {
				x.docs[action.Index.ID] = max(x.docs[action.Index.ID], action.Index.Version)
				items = append(items, `{"index":{"status":200}}`)
			}
		}
		fmt.Fprintf(w, `{"errors":false,"items":[%s]}`, strings.Join(items, ","))
	case strings.HasSuffix(r.URL.Path, "/_search"): // all at once
		hits := []string{}
		for id, version := range x.docs {
			hits = append(hits, fmt.Sprintf(`{"_source":{"url":%q,"time":%q}}`, id,
				time.UnixMilli(version).UTC().Format(time.RFC3339)))
		}
		fmt.Fprintf(w, `{"_scroll_id":"x","hits":{"hits":[%s]}}`, strings.Join(hits, ","))
	default:
		fmt.Fprint(w, `{"_scroll_id":"x","hits":{"hits":[]}}`)
	}
}

// pagesSite serves a page that links to this many others.
func pagesSite(t *testing.T, pages int) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			http.NotFound(w, r)
		case "/":
			for i := range pages {
				fmt.Fprintf(w, "<a href=/%d>%d</a>", i, i)
			}
		default:
			fmt.Fprintf(w, "<html lang=en><title>%s</title>", r.URL.Path)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func exitOf(t *testing.T, want int, name string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != want {
		t.Fatalf("exit %d, want %d: %v\n%s", code, want, err, out.String())
	}
	return out.String()
}

// A crawl that is killed, and whose sink is down for a while, has delivered all its pages in the end, by the same
// command.
func TestSinkOfACrawl(t *testing.T) {
	const pages = 200
	kumo, x, site, dir := kumoProgram(t), newIndex(t), pagesSite(t, pages), filepath.Join(t.TempDir(), "c")
	args := []string{"crawl", "--delay", "5ms", "--sink", strings.Replace(x.url(), "://", "://me:hush@", 1), "--sink-wait",
		"300ms", "-o", dir, site}
	first := exec.Command(kumo, args...)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); x.has() < 20; {
		if time.Since(begin) > time.Minute {
			t.Fatal("nothing is sent while the crawl runs")
		}
		time.Sleep(5 * time.Millisecond)
	}
	_ = first.Process.Kill()
	_ = first.Wait()
	if n := x.has(); n > pages {
		t.Skipf("it was too quick: %d were there before it was killed", n)
	}
	x.set(true)
	out := exitOf(t, exitBehind, kumo, args...)
	for _, want := range []string{"are not sent to opensearch://me:xxxxx@",
		"the same command sends the rest, or run: kumo export --to", " wait\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said:\n%s", want, out)
		}
	}
	if strings.Contains(out, "hush") {
		t.Errorf("the password is said:\n%s", out)
	}
	if s := reportedSink(t, dir); s.Waiting == 0 || s.Failures == 0 || s.Why == "" {
		t.Errorf("report.json has %+v", s)
	}
	x.set(false)
	if out = exitOf(t, exitDone, kumo, args...); x.has() != pages+1 {
		t.Errorf("%d of %d pages are there\n%s", x.has(), pages+1, out)
	}
	if s := reportedSink(t, dir); s.Sent == 0 || s.Bytes == 0 || s.Waiting != 0 || s.Why != "" ||
		!strings.Contains(exitOf(t, exitDone, kumo, "status", "-o", dir), "records sent to opensearch://me:xxxxx@") {
		t.Errorf("report.json has %+v", s)
	}
	for _, name := range []string{"config.yaml", "report.json"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || bytes.Contains(text, []byte("hush")) {
			t.Errorf("%s has the password, or %v", name, err)
		}
	}
	wantVerified(t, dir)

	// the index matches the crawl, until a document is changed
	if out := exitOf(t, exitDone, kumo, "verify", "--sink", x.url(), dir); !strings.Contains(out,
		"201 records in the crawl, 201 in") {
		t.Error(out)
	}
	x.mu.Lock()
	delete(x.docs, site+"/7")
	x.docs[site+"/8"] -= 60_000
	x.docs["http://elsewhere.test/"] = 1
	x.mu.Unlock()
	out = exitOf(t, exitFailed, kumo, "verify", "--sink", x.url(), dir)
	for _, want := range []string{"missing: " + site + "/7\n", "older: " + site + "/8\n",
		"extra: http://elsewhere.test/\n", ": 1 missing, 1 older, 1 extra\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said:\n%s", want, out)
		}
	}
	if out := exitOf(t, exitDone, kumo, "export", "--to", x.url(), dir); !strings.Contains(out,
		"201 records sent to opensearch://") {
		t.Error(out)
	}
	if out := exitOf(t, exitFailed, kumo, "verify", "--json", "--sink", x.url(), dir); !strings.Contains(out,
		`"missing": 0`) ||
		!strings.Contains(out, `"older": 0`) || !strings.Contains(out, `"extra": 1`) {
		t.Error(out)
	}
}

// reportedSink returns the entry of the one sink in report.json.
func reportedSink(t *testing.T, dir string) stats.Sink {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "report.json"))
	var report stats.Report
	if err == nil {
		err = json.Unmarshal(data, &report)
	}
	if err != nil || len(report.Sinks) != 1 {
		t.Fatalf("report.json: %d sinks, %v", len(report.Sinks), err)
	}
	return report.Sinks[0]
}

// kumo crawl -o - writes a line per page, and ends without an error when its reader closes the pipe.
func TestCrawlToAPipe(t *testing.T) {
	kumo, site, dir := kumoProgram(t), pagesSite(t, 40), t.TempDir()
	cmd := exec.Command(kumo, "crawl", "-q", "--delay", "0", "-o", "-", site)
	cmd.Dir = dir
	out, err := cmd.Output()
	if lines := strings.Count(string(out), "\n"); err != nil || lines != 41 || !strings.HasPrefix(string(out), `{"url":"`+
		site+`/","status":200,`) {
		t.Errorf("%v: %d lines\n%.300s", err, lines, out)
	}
	if there, _ := os.ReadDir(dir); len(there) > 0 {
		t.Errorf("it keeps %v", there)
	}
	cmd = exec.Command(kumo, "crawl", "-q", "--delay", "5ms", "-o", "-", site)
	cmd.Dir = dir
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	_, _ = bufio.NewReader(pipe).ReadString('\n')
	pipe.Close()
	if err := cmd.Wait(); err != nil {
		var exit *exec.ExitError
		errors.As(err, &exit)
		t.Errorf("nobody reads: %v", err)
	}
}
