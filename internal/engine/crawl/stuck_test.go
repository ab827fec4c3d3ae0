package crawl

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/state/journal/memory"
	"kumo/internal/state/transfer"
)

// TestANodeIsNotKeptFromItsEnd: URLs that are stuck are abandoned in a persistent run, too: otherwise the crawl would
// never end. Hosts that are being transferred are not touched.
func TestANodeIsNotKeptFromItsEnd(t *testing.T) {
	for origin, want := range map[string]bool{"http://nobody.test": true, transfer.ParkedFor: false} {
		synctest.Test(t, func(t *testing.T) {
			e := inMemory(t, memory.New(), nil)
			var gaveUp []string
			e.stuck.listener.Abandoned = func(host, _ string) { gaveUp = append(gaveUp, host) }
			e.frontier.Park("a.test", origin)
			for _, url := range []string{"http://a.test/1", "https://a.test/2"} {
				e.frontier.Push("a.test", item.Item{URL: url})
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- e.Run(ctx, nil, 2) }()
			time.Sleep(time.Minute) // in the test's virtual time
			if e.Idle() != want || len(gaveUp) > 1 || (len(gaveUp) == 1) != want {
				t.Errorf("parked for %s: idle %v, gave up %v", origin, e.Idle(), gaveUp)
			}
			e.Finish()
			if !want {
				cancel()
			}
			if err := <-ended; errors.Is(err, ErrStuck) != want {
				t.Errorf("parked for %s: %v", origin, err)
			}
			cancel()
		})
	}
}
