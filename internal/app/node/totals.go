package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// departedKey is where the registry has the pages of those who are members no more, so that the sum of all does not fall.
const departedKey = "pages"

// knownKey is where the registry has how many URLs all nodes knew when no host was on its way from one to another.
const knownKey = "known"

// refetchedKey is where the registry has how many pages of which dead nodes are fetched again.
const refetchedKey = "again"

// Totals are what the registry keeps of nodes that have gone, so that no total of the crawl falls with them.
type Totals struct{ Registry bus.Registry }

// Pages by node.
type Pages map[strategy.Node]int64

// Departed returns the pages of nodes that have gone.
func (t Totals) Departed(ctx context.Context) (Pages, error) {
	gone, _, err := t.pages(ctx, departedKey)
	return gone, err
}

// Refetched returns the pages that dead nodes had fetched, and that are fetched again because their records are lost.
func (t Totals) Refetched(ctx context.Context) (Pages, error) {
	again, _, err := t.pages(ctx, refetchedKey)
	return again, err
}

// AddRefetched notes such pages. Less than is noted changes nothing.
func (t Totals) AddRefetched(ctx context.Context, pages Pages) error {
	_, err := t.raise(ctx, refetchedKey, pages)
	return err
}

func (t Totals) pages(ctx context.Context, key string) (Pages, uint64, error) {
	e, err := t.Registry.Get(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	noted := Pages{}
	if e.Value != nil {
		if err := json.Unmarshal(e.Value, &noted); err != nil {
			return nil, 0, fmt.Errorf("read the pages of nodes that have gone (%s): %w", key, err)
		}
	}
	return noted, e.Revision, nil
}

// AddDeparted notes nodes, or more pages of theirs, and returns all that is noted. Less than is noted changes nothing.
func (t Totals) AddDeparted(ctx context.Context, gone Pages) (Pages, error) {
	return t.raise(ctx, departedKey, gone)
}

func (t Totals) raise(ctx context.Context, key string, more Pages) (Pages, error) {
	for {
		noted, rev, err := t.pages(ctx, key)
		if err != nil {
			return nil, err
		}
		before := maps.Clone(noted)
		for n, p := range more {
			noted[n] = max(noted[n], p)
		}
		if maps.Equal(before, noted) {
			return noted, nil
		}
		value, err := json.Marshal(noted)
		if err != nil {
			return nil, err
		}
		if _, err = t.Registry.Put(ctx, key, value, rev); !errors.Is(err, bus.ErrStale) {
			return noted, err
		}
	}
}

// SumWith is the sum of all pages, where nodes that are there still have now told so many.
func (p Pages) SumWith(now Pages) (sum int64) {
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

// Known is how many URLs all nodes knew, the last time that this could be told.
func (t Totals) Known(ctx context.Context) (int, error) {
	n, _, err := t.known(ctx)
	return n, err
}

func (t Totals) known(ctx context.Context) (n int, rev uint64, err error) {
	e, err := t.Registry.Get(ctx, knownKey)
	if err != nil || e.Value == nil {
		return 0, e.Revision, err
	}
	if n, err = strconv.Atoi(string(e.Value)); err != nil {
		err = fmt.Errorf("read how many URLs are known: %w", err)
	}
	return n, e.Revision, err
}

// RaiseKnown notes how many there are, if there are more.
func (t Totals) RaiseKnown(ctx context.Context, n int) error {
	for {
		was, rev, err := t.known(ctx)
		if err != nil || n <= was {
			return err
		}
		if _, err = t.Registry.Put(ctx, knownKey, []byte(strconv.Itoa(n)), rev); !errors.Is(err, bus.ErrStale) {
			return err
		}
	}
}
