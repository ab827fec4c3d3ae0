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
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
	"kumo/internal/state/transfer"
)

// ErrStuck is why a run did not come to its end: something waited that nothing would ever have woken. It was given up
// for this run, with the records and lines of what is given up, and waits for the next.
var ErrStuck = errors.New("not all was fetched, by a fault of kumo's")

const (
	stuckInterval = 2 * time.Second // between two looks
	maxStuck      = 10_000          // hosts that one look deals with
)

// A stuckGuard gives up URLs that nothing would wake, and counts them.
type stuckGuard struct {
	urls, hosts int
	first       string

	abandons *abandoner
	frontier *frontier.Frontier
	listener Listener
}

// err is ErrStuck if the guard has given something up.
func (s *stuckGuard) err() error {
	if s.urls == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d URLs of %d hosts, %s the first, waited for what nobody was about to do; skipped.jsonl "+
		"lists them, and the next run tries them again",
		ErrStuck, s.urls, s.hosts, s.first)
}

// keepChecking looks whether all that waits is stuck, and gives it up if it still is at the next look, until the context
// ends. What another node is to send the rest of is not stuck.
func (s *stuckGuard) keepChecking(ctx context.Context) error {
	was := uint64(0)
	return every(ctx, stuckInterval, func() (err error) {
		_, moves := s.frontier.IsDrained()
		if !s.frontier.IsStuck() {
			moves = 0
		} else if moves == was {
			err = s.abandonStuck()
		}
		was = moves
		return err
	})
}

func (s *stuckGuard) abandonStuck() error {
	var stuck []string
	for h, err := range s.frontier.Inspector().Hosts(maxStuck, frontier.ByPending) {
		if err != nil {
			return err
		}
		if slices.Contains(s.frontier.Parked(h.Key), transfer.ParkedFor) {
			return nil // the transfer's end wakes it, and may be what others wait for
		}
		stuck = append(stuck, h.Key)
	}
	before := s.urls
	for _, host := range stuck {
		if err := s.abandonHost(host); err != nil {
			return err
		}
	}
	if s.urls == before && s.frontier.IsStuck() {
		return fmt.Errorf("%w: something is said to wait, and nothing is to be found", ErrStuck)
	}
	return nil
}

// abandonHost abandons all pending URLs of a host. Its robots.txt is fetched again if more URLs come.
func (s *stuckGuard) abandonHost(host string) error {
	why := "it waited, and nothing would have woken it"
	origins := s.frontier.Parked(host)
	if len(origins) > 0 {
		why = fmt.Sprintf("it waited for the robots.txt of %s, for which nobody was asking", strings.Join(origins, " and "))
	}
	l, n := visit.Abandonment{Failure: page.Internal, Why: why}, 0
	for {
		items, err := s.abandons.removeMatching(host, func(*item.Item) bool { return true })
		if err != nil {
			return err
		}
		for i := range items {
			if items[i].Robots != "" {
				continue
			}
			if err := s.abandons.failItem(host, items[i], l); err != nil {
				return err
			}
			if n++; s.first == "" {
				s.first = items[i].URL
			}
		}
		if len(items) == 0 {
			break
		}
	}
	for _, origin := range origins {
		s.abandons.rules.Forget(origin)
		s.frontier.Unpark(host, origin)
	}
	if n > 0 {
		s.urls, s.hosts = s.urls+n, s.hosts+1
		s.listener.Abandoned(item.HostOfSlice(host), why)
	}
	return nil
}
