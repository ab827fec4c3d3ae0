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

// departedKey is the registry key of the page counts of former members, so that the total does not decrease.
const departedKey = "pages"

// departedBytesKey is the registry key of the same for bytes.
const departedBytesKey = "bytes"

// knownKey is the registry key of the number of URLs known to all nodes at a time when no host was moving.
const knownKey = "known"

// refetchedKey is the registry key of the number of pages of dead nodes that are fetched again.
const refetchedKey = "again"

// Totals are counts of departed nodes in the registry, so that the crawl's totals do not decrease.
type Totals struct{ Registry bus.Registry }

// Pages are page counts by node.
type Pages map[strategy.Node]int64

// Departed returns the page counts of departed nodes.
func (t Totals) Departed(ctx context.Context) (Pages, error) {
	gone, _, err := t.pages(ctx, departedKey)
	return gone, err
}

// Refetched returns the numbers of pages of dead nodes that are fetched again because their records are lost.
func (t Totals) Refetched(ctx context.Context) (Pages, error) {
	again, _, err := t.pages(ctx, refetchedKey)
	return again, err
}

// AddRefetched records such numbers. It never decreases a number.
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
			return nil, 0, fmt.Errorf("read the pages of departed nodes (%s): %w", key, err)
		}
	}
	return noted, e.Revision, nil
}

// AddDeparted records page counts of departed nodes, and returns all of them. It never decreases a count.
func (t Totals) AddDeparted(ctx context.Context, gone Pages) (Pages, error) {
	return t.raise(ctx, departedKey, gone)
}

// AddDepartedBytes is AddDeparted for bytes received from sites.
func (t Totals) AddDepartedBytes(ctx context.Context, gone Pages) (Pages, error) {
	return t.raise(ctx, departedBytesKey, gone)
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

// SumWith returns the sum of all pages, where now has the current counts of live nodes.
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

// Known returns the last recorded number of URLs known to all nodes.
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
		err = fmt.Errorf("read the number of known URLs: %w", err)
	}
	return n, e.Revision, err
}

// RaiseKnown records the number of known URLs, if it has increased.
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
