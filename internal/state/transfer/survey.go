package transfer

import (
	"context"

	"kumo/internal/state/frontier"
)

// SurveyStep is how many hosts a survey tells of at once.
const SurveyStep = 1000

// Survey calls f with hosts that are not this node's, and of which it has pending, abandoned or known URLs: a thousand
// at a time, some twice, without those of transfers under way. Hosts that come or go meanwhile may be missing. f may
// keep the slice.
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
	abandoned map[string]bool // hosts of which something was given up, and nobody has been told
}

// waiting finds hosts where something waits, not only the robots.txt of another.
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

// A batch gathers hosts, and calls done with so many at a time, which may keep the slice.
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
