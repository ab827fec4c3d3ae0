package crawl

import (
	"context"
	"errors"
	"fmt"

	"kumo/internal/state/frontier"
)

// A runner runs the workers.
type runner struct {
	interrupts interruptScope
	hosts      *hosts
	holds      *holds
	outages    *outageMonitor
	workers    *workerPool
	visits     *visits
	frontier   *frontier.Frontier
	stopper    *stopper
}

// work visits URLs until the frontier is drained, handing ends, or a visit fails.
func (c *runner) work(handing, fetching context.Context) error {
	for {
		c.holds.awaitRoom(handing)
		c.holds.awaitRelease(handing)
		v, err := c.frontier.Next(handing)
		switch {
		case errors.Is(err, frontier.ErrDrained), handing.Err() != nil && v == nil:
			return nil
		case err != nil:
			return err
		}
		if c.holds.disk.full.shut() || c.holds.held() { // this may have changed while Next waited
			c.frontier.Postpone(v, 0)
			continue
		}
		if wait, held := c.outages.blocks(v.URL); held {
			c.frontier.Postpone(v, wait)
			continue
		}
		w := c.workers.acquire()
		if c.hosts.router != nil {
			w.politenessHost = c.hosts.politenessHost(v)
			c.workers.begin(w, v.Host, w.politenessHost)
		}
		err = w.visit(c.interrupts.join(fetching), v)
		w.turn.release(v)
		w.releaseSlot()
		if c.workers.put(w); err != nil {
			err = fmt.Errorf("crawl %s: %w", v.URL, err)
			c.stopper.stop(err)
			return err
		}
	}
}
