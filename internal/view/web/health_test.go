package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestABlockedCheckFails: while a check blocks for less than the limit, the last result is valid; later it has failed.
// It runs once, however many requests come, and a process that recovers is healthy again.
func TestABlockedCheckFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var blocked chan struct{}
		var runs atomic.Int64
		result := errors.New("first\nsecond")
		p := &prober{limit: time.Minute, check: func() error {
			runs.Add(1)
			if blocked != nil {
				<-blocked
			}
			return result
		}}
		want := func(code int, text string) {
			t.Helper()
			w := httptest.NewRecorder()
			p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil))
			if w.Code != code || !strings.Contains(w.Body.String(), text) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, code, text)
			}
		}
		want(503, `{"status":"failed","reasons":["first","second"]}`)
		result = nil
		want(200, `{"status":"ok"}`)
		blocked = make(chan struct{})
		for range 20 {
			want(200, "ok")
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		want(503, "no result for 1m37s")
		want(503, "no result for 1m38s")
		if n := runs.Load(); n != 3 {
			t.Errorf("%d runs", n)
		}
		close(blocked)
		synctest.Wait()
		want(200, "ok")
	})
}
