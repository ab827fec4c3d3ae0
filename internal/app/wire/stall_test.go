package wire

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/state/stall"
)

// A crawl whose only host requests a long delay reports, once, that there was no response for a minute, with advice.
func TestAStalledCrawlSaysWhy(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
	})
	j := s.job(t, "a.test/")
	var ahead atomic.Int64 // of the clock
	j.Crawl.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	j.Crawl.Tries = 5
	type said struct {
		after   time.Duration
		why, do string
	}
	slowed, stalls := make(chan time.Duration, 9), make(chan said, 9)
	j.Listener.Slowed = func(_ string, _ int, _, wait time.Duration) { slowed <- wait }
	j.Listener.Stalled = func(after time.Duration, why, do string) { stalls <- said{after, why, do} }
	c, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	<-slowed
	ahead.Store(int64(5 * time.Minute))
	got := <-stalls
	if !strings.HasPrefix(got.why, "1 host is backing off, after failures or at their request; the first is a.test:") ||
		!strings.Contains(got.do, "--max-backoff") || got.after < 5*time.Minute {
		t.Errorf("%+v", got)
	}
	if o := c.Outlook(); o.Stall.Kind != stall.Backoff || o.Forecast.Words == "" {
		t.Errorf("%+v", o)
	}
	stop()
	<-done
	if len(stalls) > 0 {
		t.Errorf("it was said again: %+v", <-stalls)
	}
}
