package transfer

import (
	"context"

	"kumo/internal/state/frontier"
)

// SurveyStep is the number of hosts in one call of Survey's f.
const SurveyStep = 1000

// Survey calls f with the hosts that this node does not own but has pending, abandoned or known URLs of, without those
// of incoming transfers. It passes up to a thousand at a time, some twice. Hosts that come or go meanwhile may be
// missing. f may retain the slice.
func (r *Endpoint) Survey(ctx context.Context, f func(hosts []string) error) error {
	r.mu.Lock()
	came := r.Unsettled.IncomingHosts()
	r.mu.Unlock()
	s := survey{batch: batch{ctx: ctx, size: SurveyStep, done: f},
		foreign: func(host string) bool { return !came[host] && !r.IsOwn(host) }}
	var err error
	if s.abandoned, err = r.abandonedOf(ctx, s.foreign); err == nil {
		err = s.waiting(r.Frontier)
	}
	for host := range s.abandoned {
		if err == nil {
			err = s.add(host)
		}
	}
	if err == nil && r.DB != nil {
		err = r.knownOf(ctx, s.foreign, s.add)
	}
	if err == nil {
		err = s.flush()
	}
	return err
}

type survey struct {
	batch
	foreign   func(host string) bool
	abandoned map[string]bool // hosts with abandoned URLs, not yet passed to f
}

// waiting finds hosts with pending URLs other than robots.txt fetches of other hosts.
func (s *survey) waiting(f *frontier.Frontier) error {
	iterator := f.Iterate(s.foreign)
	defer iterator.Close()
	for {
		stay, err := iterator.Next()
		if stay == nil || err != nil {
			return err
		}
		it, err := stay.Next()
		if it != nil && err == nil {
			delete(s.abandoned, stay.Key)
			err = s.add(stay.Key)
		}
		if err != nil {
			return err
		}
	}
}

// A batch collects hosts, and calls done when there are enough. done may retain the slice.
type batch struct {
	ctx   context.Context
	size  int
	done  func(hosts []string) error
	hosts []string
}

func (b *batch) add(host string) error {
	if b.hosts = append(b.hosts, host); len(b.hosts) < b.size {
		return b.ctx.Err()
	}
	return b.flush()
}

func (b *batch) flush() error {
	hosts := b.hosts
	b.hosts = nil
	if err := b.ctx.Err(); err != nil || len(hosts) == 0 {
		return err
	}
	return b.done(hosts)
}
