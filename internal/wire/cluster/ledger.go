package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"kumo/internal/bus"
	"kumo/internal/strategy"
)

// goneKey is where the registry has the pages of those who are members no more, so that the sum of all does not fall.
const goneKey = "pages"

// knownKey is where the registry has how many URLs all nodes knew when no host was on its way from one to another.
const knownKey = "known"

// A ledger is what is kept of nodes that have gone.
type ledger struct{ registry bus.Registry }

// Pages by node.
type pages map[strategy.Node]int64

// read returns what is noted.
func (l ledger) read(ctx context.Context) (pages, uint64, error) {
	e, err := l.registry.Get(ctx, goneKey)
	if err != nil {
		return nil, 0, err
	}
	noted := pages{}
	if e.Value != nil {
		if err := json.Unmarshal(e.Value, &noted); err != nil {
			return nil, 0, fmt.Errorf("read the pages of nodes that have gone: %w", err)
		}
	}
	return noted, e.Revision, nil
}

// note adds nodes, or more pages of theirs, and returns all that is noted. Less than is noted changes nothing.
func (l ledger) note(ctx context.Context, gone pages) (pages, error) {
	for {
		noted, rev, err := l.read(ctx)
		if err != nil {
			return nil, err
		}
		before := maps.Clone(noted)
		for n, p := range gone {
			noted[n] = max(noted[n], p)
		}
		if maps.Equal(before, noted) {
			return noted, nil
		}
		value, err := json.Marshal(noted)
		if err != nil {
			return nil, err
		}
		if _, err = l.registry.Put(ctx, goneKey, value, rev); !errors.Is(err, bus.ErrStale) {
			return noted, err
		}
	}
}

// with is the sum of all pages, where nodes that are there still have now told so many.
func (p pages) with(now pages) (sum int64) {
	for n, there := range now {
		sum += max(there, p[n])
	}
	for n, gone := range p {
		if _, there := now[n]; !there {
			sum += gone
		}
	}
	return sum
}

// known is how many URLs all nodes knew.
func (l ledger) known(ctx context.Context) (n int, rev uint64, err error) {
	e, err := l.registry.Get(ctx, knownKey)
	if err != nil || e.Value == nil {
		return 0, e.Revision, err
	}
	if n, err = strconv.Atoi(string(e.Value)); err != nil {
		err = fmt.Errorf("read how many URLs are known: %w", err)
	}
	return n, e.Revision, err
}

// noteKnown notes how many there are, if there are more.
func (l ledger) noteKnown(ctx context.Context, n int) error {
	for {
		was, rev, err := l.known(ctx)
		if err != nil || n <= was {
			return err
		}
		if _, err = l.registry.Put(ctx, knownKey, []byte(strconv.Itoa(n)), rev); !errors.Is(err, bus.ErrStale) {
			return err
		}
	}
}
