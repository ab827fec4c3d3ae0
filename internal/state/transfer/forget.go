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

// remove removes hosts, sorted, from the frontier. It calls within inside the ledger's exclusive gate, for the hosts
// and for related changes. Afterwards it reads the removed queues, which may take long.
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

// ForgetStep is the number of hosts removed in one hold of the ledger's gate.
const ForgetStep = 1024

// ForgetHosts forgets, durably, the hosts for which gone returns true, because other nodes have received them
// completely. It may be called again after a crash.
func (r *Endpoint) ForgetHosts(ctx context.Context, gone member.Moved) error {
	if r.DB == nil {
		return ErrNoDB
	}
	return r.durably(ctx, "forget hosts", func() (uint64, error) { return r.forgetAll(ctx, gone) })
}

// Release forgets hosts, durably, regardless of their owners, and the state of their pending URLs, which are new if
// they come back. It calls within with each part of the hosts as it is forgotten, inside the ledger's exclusive gate.
func (r *Endpoint) Release(ctx context.Context, hosts []string, within func(hosts []string)) error {
	if r.DB == nil {
		return ErrNoDB
	}
	return r.durably(ctx, "release hosts", func() (uint64, error) { return r.release(ctx, hosts, within) })
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
				continue // already added by abandonedHosts
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

// A forgetting finds hosts and forgets them in batches.
type forgetting struct {
	*Endpoint
	batch
	gone      func(host string) bool
	abandoned map[string]bool      // hosts with items in the abandoned queue
	also      func(hosts []string) // called in the gate with each batch; may be nil
	sequence  uint64
}

func newForgetting(ctx context.Context, r *Endpoint, gone func(host string) bool) *forgetting {
	f := &forgetting{Endpoint: r, gone: gone, sequence: r.Ledger.Sequence()}
	f.batch = batch{ctx: ctx, size: ForgetStep, done: f.forget}
	return f
}

// run forgets the hosts found by some steps. It returns the ledger's sequence number of the batch that forgets the last
// of them; the caller can wait until it is durable.
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

// knownOf calls f with hosts that have known URLs and are not away. of selects the hosts.
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

// IsAway reports whether a host is not held here; see the package comment.
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

// An originFilter calls of once per origin, or once for each slice of its host. URLs must be in order.
type originFilter struct {
	slices *item.Slices
	of     func(host string) bool
	origin string       // origin of the last URL
	host   string       // its host
	known  map[int]bool // results by slice number, if there are slices
	answer bool         // result if there are none
}

// match reports whether the host or slice of a URL is selected.
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

// An originOrder finds in an ordered sequence of URLs where an origin starts, and where a slice of its host occurs
// first.
type originOrder struct {
	slices *item.Slices
	origin string          // origin of the last URL
	met    map[string]bool // its slices so far, if there are slices
}

// next returns the host or slice of a URL, and whether that is its first URL of the origin.
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

// Forget forgets the hosts for which gone returns true (nil means none), because other nodes have received them
// completely. Then it records, durably, which transfers are finished, so that hosts that come back later are not
// forgotten again.
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
