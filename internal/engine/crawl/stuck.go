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

// ErrStuck is returned by a run that could not finish: some pending URLs could never be visited because of a bug. They
// were abandoned for this run and reported as failed, and the next run retries them.
var ErrStuck = errors.New("not all URLs were fetched because of a bug in kumo")

const (
	stuckInterval = 2 * time.Second // interval of checks
	maxStuck      = 10_000          // hosts per check
)

// A stuckGuard abandons URLs that would be pending forever, and counts them.
type stuckGuard struct {
	urls, hosts int
	first       string

	abandons *abandoner
	frontier *frontier.Frontier
	listener Listener
}

// err returns ErrStuck if the guard has abandoned URLs.
func (s *stuckGuard) err() error {
	if s.urls == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d URLs of %d hosts, %s the first, were pending without a cause; skipped.jsonl "+
		"lists them, and the next run tries them again",
		ErrStuck, s.urls, s.hosts, s.first)
}

// keepChecking checks at intervals whether all pending URLs are stuck, and abandons them if two checks in a row find
// the same state, until the context ends. Hosts that are being transferred are not stuck.
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
			return nil // the end of the transfer releases it, and perhaps others
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
		return fmt.Errorf("%w: the frontier counts pending URLs but finds none", ErrStuck)
	}
	return nil
}

// abandonHost abandons all pending URLs of a host. Its robots.txt is fetched again if more URLs come.
func (s *stuckGuard) abandonHost(host string) error {
	why := "its URLs were pending without a cause"
	origins := s.frontier.Parked(host)
	if len(origins) > 0 {
		why = fmt.Sprintf("its URLs waited for the robots.txt of %s, which was not requested", strings.Join(origins, " and "))
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
