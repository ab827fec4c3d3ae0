package transfer

import (
	"context"
	"errors"
	"slices"
	"strings"

	"kumo/internal/base/item"
	"kumo/internal/cluster/member"
	"kumo/internal/state/entry"
)

// remove takes hosts, sorted, out of the frontier, alone within the ledger's gate, where within says which, and does
// what else belongs to it; and then reads what their queues had, which may take long.
func (r *Endpoint) remove(within func() (hosts []string, err error)) error {
	var hosts []string
	err := r.Ledger.WithinExclusive(func() (err error) {
		if hosts, err = within(); err != nil {
			return err
		}
		var enc entry.Encoder
		enc.HostsForgotten(hosts)
		r.Ledger.Enqueue(enc.Writer)
		r.Frontier.Remove(hosts...)
		return nil
	})
	if err != nil {
		return err
	}
	robots, err := r.Frontier.FinishRemove()
	r.OnRemoved(hosts, robots)
	return err
}

// ForgetStep is how many hosts are removed in one hold of the ledger's gate.
const ForgetStep = 1024

// ForgetHosts forgets the hosts that have come whole to other nodes, durably: gone says which. It may be called again
// after a crash.
func (r *Endpoint) ForgetHosts(ctx context.Context, gone member.Moved) error {
	if r.DB == nil {
		return ErrNoDB
	}
	return r.durably(ctx, "forget hosts", func() (uint64, error) { return r.forgetAll(ctx, gone) })
}

// Release forgets hosts, durably, whoever has them now, and what was known of what waits there: it is new if it comes
// back. within is called with each part of them as it is forgotten, alone within the ledger's gate.
func (r *Endpoint) Release(ctx context.Context, hosts []string, within func(hosts []string)) error {
	if r.DB == nil {
		return ErrNoDB
	}
	return r.durably(ctx, "give up hosts", func() (uint64, error) { return r.release(ctx, hosts, within) })
}

func (r *Endpoint) release(ctx context.Context, hosts []string, within func(hosts []string)) (uint64, error) {
	named := make(map[string]bool, len(hosts))
	for _, host := range hosts {
		named[host] = true
	}
	f := newForgetting(ctx, r, func(host string) bool { return named[host] })
	f.also = func(hosts []string) {
		var enc entry.Encoder
		enc.HostsReleased(hosts)
		r.Ledger.Enqueue(enc.Writer)
		within(hosts)
	}
	others := func() error {
		for _, host := range hosts {
			if f.abandoned[host] {
				continue // it is among them
			}
			if err := f.add(host); err != nil {
				return err
			}
		}
		return nil
	}
	return f.run(f.abandonedHosts, others)
}

func (r *Endpoint) forgetAll(ctx context.Context, gone member.Moved) (sequence uint64, err error) {
	r.mu.Lock()
	unsettled := r.Unsettled.Clone()
	r.mu.Unlock()
	stays := unsettled.stayingHosts(gone)
	f := newForgetting(ctx, r, func(host string) bool { return !stays[host] && gone(host, 0) })
	return f.run(f.abandonedHosts, f.waiting, func() error { return r.knownOf(ctx, f.gone, f.add) })
}

// A forgetting finds hosts and forgets them, some at a time.
type forgetting struct {
	*Endpoint
	batch
	gone      func(host string) bool
	abandoned map[string]bool      // hosts that have something on the abandoned queue
	also      func(hosts []string) // done as they are forgotten; may be nil
	sequence  uint64
}

func newForgetting(ctx context.Context, r *Endpoint, gone func(host string) bool) *forgetting {
	f := &forgetting{Endpoint: r, gone: gone, sequence: r.Ledger.Sequence()}
	f.batch = batch{ctx: ctx, size: ForgetStep, done: f.forget}
	return f
}

// run forgets what some steps find. It returns where the journal has that.
func (f *forgetting) run(steps ...func() error) (sequence uint64, err error) {
	for _, step := range append(steps, f.flush) {
		if err := step(); err != nil {
			return 0, err
		}
	}
	return f.sequence, nil
}

func (f *forgetting) abandonedHosts() (err error) {
	f.abandoned, err = f.abandonedOf(f.ctx, f.gone)
	for host := range f.abandoned {
		if err == nil {
			err = f.add(host)
		}
	}
	return err
}

func (f *forgetting) waiting() error {
	iterator := f.Frontier.Iterate(f.gone)
	defer iterator.Close()
	for {
		s, err := iterator.Next()
		if s == nil || err != nil {
			return err
		}
		if err := f.add(s.Key); err != nil {
			return err
		}
	}
}

func (r *Endpoint) abandonedOf(ctx context.Context, of func(host string) bool) (map[string]bool, error) {
	all := map[string]bool{}
	return all, r.Abandoned.EachCurrent(func(it item.Item) error {
		if host := r.Frontier.Slices().Of(it.URL); !all[host] && of(host) {
			all[host] = true
		}
		return ctx.Err()
	})
}

// knownOf calls f with some hosts that have known URLs, and are not away.
func (r *Endpoint) knownOf(ctx context.Context, of func(host string) bool, f func(host string) error) error {
	slices := r.Frontier.Slices()
	wanted := originFilter{slices: slices, of: func(host string) bool { return of(host) && !r.IsAway(host) }}
	hosts := originOrder{slices: slices}
	for entry, err := range r.DB.Select(wanted.match) {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if host, news := hosts.next(entry.URL); news && !r.IsAway(host) {
			if err := f(strings.Clone(host)); err != nil {
				return err
			}
		}
	}
	return nil
}

// IsAway reports whether a host is not held here: see the package comment.
func (r *Endpoint) IsAway(host string) bool {
	i, _ := r.Frontier.Host(host)
	return i.Away
}

func (f *forgetting) forget(hosts []string) error {
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	return f.remove(func() ([]string, error) {
		f.sequence = f.Ledger.Sequence()
		for _, host := range hosts {
			if f.abandoned[host] {
				if err := f.Abandoned.RemoveHost(host); err != nil {
					return nil, err
				}
			}
		}
		if f.also != nil {
			f.also(hosts)
		}
		return hosts, nil
	})
}

// An originFilter asks once for each slice of an origin's host in an order of URLs.
type originFilter struct {
	slices *item.Slices
	of     func(host string) bool
	origin string       // of the last URL
	host   string       // of that
	known  map[int]bool // by the numbers of slices, where there are several
	answer bool         // where there is one
}

// match reports whether a URL is of a host, or of a slice, that is wanted.
func (o *originFilter) match(url []byte) bool {
	if origin := item.OriginOf(url); string(origin) != o.origin {
		o.origin = string(origin)
		o.host = item.HostOf(o.origin + "/")
		if o.slices == nil {
			o.answer = o.of(o.host)
		} else if o.known == nil {
			o.known = map[int]bool{}
		} else {
			clear(o.known)
		}
	}
	if o.slices == nil {
		return o.answer
	}
	number := o.slices.Number(url)
	wanted, known := o.known[number]
	if !known {
		wanted = o.of(o.slices.Name(o.host, number))
		o.known[number] = wanted
	}
	return wanted
}

// An originOrder says in an order of URLs where the next origin begins, and where a slice of its host is met first.
type originOrder struct {
	slices *item.Slices
	origin string          // the origin of the last URL that next was told
	met    map[string]bool // slices of that, where there are several
}

// next is the host of a URL, or its slice, and whether that is the first of its origin.
func (o *originOrder) next(url string) (host string, news bool) {
	origin := item.OriginOf(url)
	if origin != o.origin {
		o.origin = origin
		clear(o.met)
	} else if o.slices == nil {
		return "", false
	}
	host = o.slices.Of(url)
	if o.slices == nil {
		return host, true
	}
	if o.met == nil {
		o.met = map[string]bool{}
	}
	news = !o.met[host]
	o.met[host] = true
	return host, news
}

// Forget forgets the hosts that have come whole to other nodes (gone says which; nil: none), and then notes, durably,
// which transfers are done with: what comes back from there is not to be forgotten again.
func (r *Endpoint) Forget(ctx context.Context, gone member.Moved, whole []member.Transfer) error {
	if gone != nil {
		if err := r.ForgetHosts(ctx, gone); err != nil {
			return err
		}
	}
	if len(whole) == 0 {
		return nil
	}
	sequence, err := r.change(r.Ledger.Within, func(enc *entry.Encoder) {
		enc.TransfersDone(whole)
		r.Unsettled.Went = append(r.Unsettled.Went, whole...)
	})
	if err != nil {
		return err
	}
	return r.Ledger.WaitDurable(ctx, sequence)
}
