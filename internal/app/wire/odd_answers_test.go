package wire

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
)

// raw responds with arbitrary bytes.
func raw(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, answer)
	}
}

// TestWhatIsNoPageIsNoDuplicate: an error or redirect with the body of another one is stored as a revisit, but not
// counted as a duplicate. An invalid status is not a response. The files are consistent with the counts.
func TestWhatIsNoPageIsNoDuplicate(t *testing.T) {
	t.Parallel()
	pages := map[string]http.HandlerFunc{}
	links := ""
	for i := range 3 {
		for what, answer := range map[string]http.HandlerFunc{
			"page": html("the same"),
			"gone": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); io.WriteString(w, "not here") },
			"move": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/page0")
				w.WriteHeader(301)
				io.WriteString(w, "it has moved")
			},
			"none": raw("HTTP/1.1 000 Zero\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nzero"),
			"low":  raw("HTTP/1.1 099 Low\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\nlow"),
			"high": raw("HTTP/1.1 999 High\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nhigh"),
		} {
			path := fmt.Sprint("/", what, i)
			pages["a.test"+path] = answer
			links += "<a href=" + path + "></a>"
		}
	}
	pages["a.test/"] = html(links)
	s := newSite(t, pages)
	j := s.job(t, "a.test/")
	c, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	report, err := c.Run(t.Context())
	if err != nil || c.Close() != nil {
		t.Fatal(err)
	}
	wantVerified(t, j.Dir)
	if report.Duplicates != 2 || report.Errors["malformed"] != 6 || report.Pages != 1+3+3+3+3 {
		t.Errorf("%d pages, %d duplicates, %v", report.Pages, report.Duplicates, report.Errors)
	}
}

// TestAStoppedCrawlIsWhole: a crawl of the hostile web that is stopped at any time leaves consistent files.
func TestAStoppedCrawlIsWhole(t *testing.T) {
	t.Parallel()
	cfg := synthweb.Messy(3, 20, 1500)
	cfg.MedianSize = 1 << 10
	s := jobtest.Serve(t, cfg)
	for i := range 4 {
		j := jobtest.For(s, t.TempDir())
		j.Fetch.Timeout, j.Fetch.ConnectTimeout = time.Second, time.Second
		ctx, cancel := context.WithCancel(t.Context())
		switch i {
		case 0:
			j.Crawl.Time = 300 * time.Millisecond
		case 1:
			j.Crawl.Pages = 300
		case 2:
			j.Crawl.Bytes = 500_000
		case 3:
			time.AfterFunc(300*time.Millisecond, cancel)
		}
		if err := run(t, ctx, j); err == nil {
			t.Logf("%d: it came to its end before", i)
		}
		cancel()
	}
}
