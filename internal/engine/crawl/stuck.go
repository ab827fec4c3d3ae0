package crawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/state/frontier"
	"kumo/internal/state/transfer"
)

// ErrStuck is why a run did not come to its end: something waited that nothing would ever have woken. It was given up
// for this run, with the records and lines of what is given up, and waits for the next.
var ErrStuck = errors.New("not all was fetched, by a fault of kumo's")

const (
	lookStuck = 2 * time.Second // between two looks
	maxStuck  = 10_000          // hosts that one look deals with
)

// A stuckTally is what was given up because nothing would have woken it.
type stuckTally struct {
	urls, hosts int
	first       string
}

func (s *stuckTally) err() error {
	if s.urls == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d URLs of %d hosts, %s the first, waited for what nobody was about to do; skipped.jsonl "+
		"lists them, and the next run tries them again",
		ErrStuck, s.urls, s.hosts, s.first)
}

// keepMoving looks whether all that waits is stuck, and gives it up if it still is at the next look, until the context
// ends. What another node is to send the rest of is not stuck.
func (e *Engine) keepMoving(ctx context.Context) error {
	tick := time.NewTicker(lookStuck)
	defer tick.Stop()
	for was := uint64(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		_, moves := e.frontier.Dry()
		if !e.frontier.Stuck() {
			moves = 0
		} else if moves == was {
			if err := e.giveUpStuck(); err != nil {
				return err
			}
		}
		was = moves
	}
}

func (e *Engine) giveUpStuck() error {
	var stuck []string
	for h, err := range e.frontier.Inspector().Hosts(maxStuck, frontier.ByWaiting) {
		if err != nil {
			return err
		}
		if slices.Contains(e.frontier.Parked(h.Key), transfer.ParkedFor) {
			return nil // the transfer's end wakes it, and may be what others wait for
		}
		stuck = append(stuck, h.Key)
	}
	before := e.stuck.urls
	for _, host := range stuck {
		if err := e.giveUpHost(host); err != nil {
			return err
		}
	}
	if e.stuck.urls == before && e.frontier.Stuck() {
		return fmt.Errorf("%w: something is said to wait, and nothing is to be found", ErrStuck)
	}
	return nil
}

// giveUpHost gives up all that waits at a host. If something comes to it later, its robots.txt is asked for anew.
func (e *Engine) giveUpHost(host string) error {
	why := "it waited, and nothing would have woken it"
	origins := e.frontier.Parked(host)
	if len(origins) > 0 {
		why = fmt.Sprintf("it waited for the robots.txt of %s, for which nobody was asking", strings.Join(origins, " and "))
	}
	l, n := abandonment{page.Internal, why}, 0
	for {
		items, err := e.takeMatching(host, func(*item.Item) bool { return true })
		if err != nil {
			return err
		}
		for i := range items {
			if items[i].Robots != "" {
				continue
			}
			if err := e.failItem(host, items[i], l); err != nil {
				return err
			}
			if n++; e.stuck.first == "" {
				e.stuck.first = items[i].URL
			}
		}
		if len(items) == 0 {
			break
		}
	}
	for _, origin := range origins {
		e.origins.rulesCame(origin)
		e.frontier.Unpark(host, origin)
	}
	if n > 0 {
		e.stuck.urls, e.stuck.hosts = e.stuck.urls+n, e.stuck.hosts+1
		e.listener.gaveUp(item.HostOfSlice(host), why)
	}
	return nil
}
