package wire

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/lab/testmain"
)

// TestClockIsSet changes the wall clock by an hour and a day, forward and back, at each page of a crawl. All pages are
// fetched once, with the host's delay between requests; robots.txt is fetched once, and no host is abandoned.
func TestClockIsSet(t *testing.T) {
	t.Parallel()
	const pages, delay = 12, 60 * time.Millisecond
	leaps := []time.Duration{time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour, -24 * time.Hour, time.Hour}
	var at atomic.Int64 // offset of the wall clock
	var mu sync.Mutex   // guards below
	var answers int
	var ended time.Time
	var short []time.Duration
	answer := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			if now := time.Now(); !ended.IsZero() && now.Sub(ended) < delay-5*time.Millisecond {
				short = append(short, now.Sub(ended))
			}
			at.Add(int64(leaps[answers%len(leaps)]))
			answers++
			_, _ = io.WriteString(w, body)
			ended = time.Now()
			mu.Unlock()
		}
	}
	site := map[string]http.HandlerFunc{"a.test/robots.txt": answer("")}
	links := ""
	for i := range pages {
		links += fmt.Sprintf("<a href=/%d>%d</a>", i, i)
		site[fmt.Sprint("a.test/", i)] = answer("<title>a page</title>")
	}
	site["a.test/"] = answer("<html>" + links)
	s := newSite(t, site)
	j := s.job(t, "a.test/")
	j.Frontier.Delay = delay
	j.Crawl.Now = func() time.Time { return testmain.JumpClock(time.Now(), time.Duration(at.Load())) }
	mustRun(t, j)
	asked := map[string]int{}
	for _, a := range s.asked {
		asked[a]++
	}
	for i := range pages {
		if n := asked[fmt.Sprint("a.test/", i)]; n != 1 {
			t.Errorf("page %d was asked for %d times", i, n)
		}
	}
	if asked["a.test/robots.txt"] != 1 {
		t.Errorf("robots.txt was asked for %d times", asked["a.test/robots.txt"])
	}
	if len(short) > 0 {
		t.Errorf("requests came sooner than the delay of %v after the last answer: %v", delay, short)
	}
	if answers != pages+2 {
		t.Errorf("the clock was set %d times", answers)
	}
}
