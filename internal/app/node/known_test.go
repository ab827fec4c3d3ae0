package node

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// TestNothingIsWaitedFor: a request without URLs is answered at once.
func TestNothingIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		pollMembers(ctx, nobodysBus{}, "crawl", []strategy.Member{{Node: "a~1"}}, nil)
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// A nobodysBus delivers no messages.
type nobodysBus struct{ bus.Bus }

func (nobodysBus) Receive(ctx context.Context, _ func(strategy.Node, []byte)) error {
	<-ctx.Done()
	return ctx.Err()
}
