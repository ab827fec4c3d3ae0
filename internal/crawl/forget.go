package crawl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kumo/internal/entry"

	"kumo/internal/item"
)

// removed is what was taken out of the frontier, sorted.
type removed struct{ hosts []string }

// afterRemoval forgets what the engine keeps for hosts that are gone: if they come back, all is asked anew. Where a
// robots.txt was to be had at one of them for another host, that asks anew, too. Their queues are read for that, which
// may take long: the ledger's gate is not held.
func (e *Engine) afterRemoval(r *removed) error {
	robots, err := e.frontier.Removed()
	for _, host := range r.hosts {
		e.origins.rulesCame("http://" + host)
		e.origins.rulesCame("https://" + host)
	}
	for i := range robots {
		e.origins.rulesCame(robots[i].Robots)
		e.frontier.Unpark(hostOf(robots[i].Robots), robots[i].Robots)
	}
	e.ends.dropReported(func(url string) bool {
		_, gone := slices.BinarySearch(r.hosts, item.HostOf(url))
		return gone
	})
	return err
}

// forgetStep is how many hosts are removed in one hold of the ledger's gate.
const forgetStep = 1024

// forgetHosts forgets the hosts that have come whole to other nodes, durably: gone says which. It may be called again after
// a crash.
func (e *Engine) forgetHosts(ctx context.Context, gone func(host string) bool) error {
	if e.known.db == nil {
		return errNoDB
	}
	e.peers.transfer.one.Lock()
	sequence, err := e.forgetAll(ctx, gone)
	e.peers.transfer.one.Unlock()
	if err != nil {
		return fmt.Errorf("forget hosts: %w", err)
	}
	return e.sure(ctx, sequence)
}

func (e *Engine) forgetAll(ctx context.Context, gone func(host string) bool) (sequence uint64, err error) {
	f := forgetting{Engine: e, ctx: ctx, sequence: e.ledger.Sequence()}
	came := e.peers.transfer.arrivals.hosts()
	f.gone = func(host string) bool { return !came[host] && gone(host) }
	for _, step := range []func() error{f.shelved, f.waiting, f.forgetKnown, f.flush} {
		if err := step(); err != nil {
			return 0, err
		}
	}
	return f.sequence, nil
}

// A forgetting finds hosts and forgets them, some at a time.
type forgetting struct {
	*Engine
	ctx      context.Context
	gone     func(host string) bool
	hosts    []string
	shelf    map[string]bool // hosts that have something on the abandoned queue
	sequence uint64
}

func (f *forgetting) add(host string) error {
	if f.hosts = append(f.hosts, host); len(f.hosts) < forgetStep {
		return nil
	}
	return f.flush()
}

// shelved finds hosts of which something was given up.
func (f *forgetting) shelved() error {
	f.shelf = map[string]bool{}
	err := f.Engine.files.abandoned.Current(func(it item.Item) error {
		if host := it.Host(); !f.shelf[host] && f.gone(host) {
			f.shelf[host] = true
		}
		return nil
	})
	for host := range f.shelf {
		if err == nil {
			err = f.add(host)
		}
	}
	return err
}

// waiting finds hosts where something waits.
func (f *forgetting) waiting() error {
	tour := f.frontier.Iterate(f.gone)
	defer tour.Close()
	for {
		s, err := tour.Next()
		if s == nil || err != nil {
			return err
		}
		if err := f.add(s.Key); err != nil {
			return err
		}
	}
}

// known finds hosts of which only is known what was there.
func (f *forgetting) forgetKnown() error {
	hosts := byOrigin[bool]{of: func(host string) bool { return f.gone(host) && !f.isAway(host) }}
	for entry, err := range f.known.db.Select(hosts.isOf) {
		if err = errors.Join(err, f.ctx.Err()); err != nil {
			return err
		}
		if host, news := hosts.next(entry.URL); news && !f.isAway(host) {
			if err := f.add(host); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Engine) isAway(host string) bool {
	i, _ := e.frontier.Host(host)
	return i.Away
}

// flush forgets those that were found.
func (f *forgetting) flush() error {
	if len(f.hosts) == 0 {
		return f.ctx.Err()
	}
	slices.Sort(f.hosts)
	r := removed{hosts: slices.Compact(f.hosts)}
	err := f.ledger.Within(func() (err error) {
		var enc entry.Encoder
		enc.HostsForgotten(r.hosts)
		f.ledger.Enqueue(enc.Writer)
		f.sequence = f.ledger.Sequence()
		for _, host := range r.hosts {
			if f.shelf[host] {
				if err := f.Engine.files.abandoned.Void(host); err != nil {
					return err
				}
			}
		}
		f.frontier.Remove(r.hosts...)
		return nil
	})
	if err == nil {
		err = f.afterRemoval(&r)
	}
	if err != nil {
		return err
	}
	f.hosts = f.hosts[:0]
	return f.ctx.Err()
}

// byOrigin asks once for each origin in an order of URLs.
type byOrigin[T comparable] struct {
	of     func(host string) T
	asked  string // the origin that was asked about last
	answer T
	given  string // the origin of the last URL that next was told
}

// ask is the answer for a URL's host.
func (o *byOrigin[T]) ask(url []byte) T {
	if origin := originOfURL(url); string(origin) != o.asked {
		o.asked = string(origin)
		o.answer = o.of(item.HostOf(o.asked + "/"))
	}
	return o.answer
}

// isOf reports whether there is an answer for a URL's host.
func (o *byOrigin[T]) isOf(url []byte) bool {
	var none T
	return o.ask(url) != none
}

// next is the host of a URL, and whether its origin is another than the last.
func (o *byOrigin[T]) next(url string) (host string, news bool) {
	origin := originOfURL(url)
	if origin == o.given {
		return "", false
	}
	o.given = origin
	return item.HostOf(url), true
}
