package wire

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"kumo/internal/base/page"
)

// The delay applies to a host even if none of its pages are stored.
func TestDroppedRecordsOweTheDelay(t *testing.T) {
	t.Parallel()
	const delay = 200 * time.Millisecond
	var mu sync.Mutex
	var asked []time.Time
	noting := func(h http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked = append(asked, time.Now())
			mu.Unlock()
			h(w, r)
		}
	}
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/":  noting(html(`<a href="/1"></a><a href="/2"></a><a href="/3"></a>`)),
		"a.test/1": noting(html(`one`)), "a.test/2": noting(html(`two`)), "a.test/3": noting(html(`three`)),
	})
	j := s.job(t, "a.test/")
	j.Frontier.Delay = delay
	j.Hooks.Record = func(*page.Record) (string, error) { return "not wanted", nil }
	_ = run(t, t.Context(), j) // nothing is stored
	if len(asked) != 4 {
		t.Errorf("%d pages were asked for, want 4", len(asked))
	}
	for i := 1; i < len(asked); i++ {
		if gap := asked[i].Sub(asked[i-1]); gap < delay-20*time.Millisecond {
			t.Errorf("asked again after %v, want %v", gap, delay)
		}
	}
}
