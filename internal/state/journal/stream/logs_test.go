package stream_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"kumo/internal/cluster/bus"
)

// logs implements a bus's logs in memory. They can be trimmed and can fail.
type logs struct {
	mu   sync.Mutex
	all  map[string][][]byte // entry n is at n-1
	cut  map[string]uint64   // entries before this one, except the last, were trimmed
	any  *rand.Rand          // chooses which of them Read still returns; nil: none
	away bool
	// if set, a third of the calls fail, and half of the failed appends take effect
	dice   *rand.Rand
	before func(name string, data []byte) // called before each append, without the lock
}

func newLogs() *logs { return &logs{all: map[string][][]byte{}, cut: map[string]uint64{}} }

func (l *logs) cutOff(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = away
}

// fails reports whether a call fails, and whether it takes effect first. The caller holds the lock.
func (l *logs) fails() (fails, works bool) {
	if l.away {
		return true, false
	}
	if l.dice == nil || l.dice.IntN(3) > 0 {
		return false, true
	}
	return true, l.dice.IntN(2) == 0
}

var errAway = fmt.Errorf("no quorum: %w", bus.ErrUnavailable)

func (l *logs) Append(_ context.Context, name string, data []byte, after uint64) (uint64, error) {
	if l.before != nil {
		l.before(name, data)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fails, works := l.fails()
	if works {
		if uint64(len(l.all[name])) != after {
			return 0, bus.ErrStale
		}
		l.all[name] = append(l.all[name], bytes.Clone(data))
	}
	if fails {
		return 0, errAway
	}
	return uint64(len(l.all[name])), nil
}

func (l *logs) Last(_ context.Context, name string) (uint64, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if fails, _ := l.fails(); fails {
		return 0, nil, errAway
	}
	all := l.all[name]
	if len(all) == 0 {
		return 0, nil, nil
	}
	return uint64(len(all)), bytes.Clone(all[len(all)-1]), nil
}

func (l *logs) Read(_ context.Context, name string, after uint64, f func(uint64, []byte) error) error {
	l.mu.Lock()
	all := l.all[name]
	l.mu.Unlock()
	for n := after; n < uint64(len(all)); n++ {
		l.mu.Lock()
		gone := n+1 < l.cut[name] && n+1 < uint64(len(all)) && (l.any == nil || l.any.IntN(3) == 0)
		fails := false
		if !gone {
			fails, _ = l.fails()
		}
		l.mu.Unlock()
		if fails {
			return errAway
		}
		if gone {
			continue
		}
		if err := f(n+1, bytes.Clone(all[n])); err != nil {
			return err
		}
	}
	return nil
}

func (l *logs) Trim(_ context.Context, name string, before uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	fails, works := l.fails()
	if works {
		l.cut[name] = max(l.cut[name], before)
	}
	if fails {
		return errAway
	}
	return nil
}

// raw returns the entries of a log.
func (l *logs) raw(name string) [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[name]
}
