package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/strategy"
)

// RecordKey is where the registry has the crawl's Record.
const RecordKey = "crawl"

const (
	seedsPrefix      = "seeds/"
	takenSuffix      = "/taken"
	scopeSeedsPrefix = "roots/"
)

// A Control changes and reads a crawl's record. It needs no node.
type Control struct {
	Registry bus.Registry
	By       string // who changes it, as the record notes
}

// Record reads the record, and its revision; 0 if there is none yet.
func (c Control) Record(ctx context.Context) (desired.Record, uint64, error) {
	e, err := c.Registry.Get(ctx, RecordKey)
	if err != nil {
		return desired.Record{}, 0, fmt.Errorf("read the crawl's record: %w", err)
	}
	r, err := desired.Parse(e.Value)
	return r, e.Revision, err
}

func (c Control) write(ctx context.Context, r desired.Record, rev uint64) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = c.Registry.Put(ctx, RecordKey, value, rev)
	return err
}

// change changes the record until that is done, or ctx ends. What f changes may be changed already: by an earlier try.
func (c Control) change(ctx context.Context, f func(*desired.Record) error) error {
	for again := 50 * time.Millisecond; ; again = min(2*again, 2*time.Second) {
		r, rev, err := c.Record(ctx)
		if err == nil {
			if err := f(&r); err != nil {
				return err
			}
			err = c.write(ctx, r, rev)
		}
		if !errors.Is(err, bus.ErrStale) && !errors.Is(err, bus.ErrUnavailable) {
			return err
		}
		if wait.For(ctx, again) != nil {
			return fmt.Errorf("change the crawl's record: %w", retryError(ctx, err))
		}
	}
}

// retryError is why something is not done when ctx has ended: ctx's own error if somebody wanted that, else what was in the
// way until then.
func retryError(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case !errors.Is(cause, context.DeadlineExceeded):
		return cause
	case err == nil || errors.Is(err, cause) && !errors.Is(err, bus.ErrUnavailable):
		return bus.ErrUnavailable
	}
	return err
}

// Start lets the crawl begin with seeds, or go on. The settings are those of the first start; of a later one the given
// ones are changed, which must be some that nodes look up in the record while they run.
func (c Control) Start(ctx context.Context, settings map[string][]string, seeds []string) error {
	if err := c.AddSeeds(ctx, slices.Values(seeds)); err != nil {
		return err
	}
	return c.change(ctx, func(r *desired.Record) error {
		if err := r.Start(settings, len(seeds) > 0); err != nil {
			return err
		}
		r.AddChange(c.By, "start")
		return nil
	})
}

// SetStrategyData gives the strategy something, before the crawl is started: what was given is replaced.
func (c Control) SetStrategyData(ctx context.Context, data []byte) error {
	for {
		e, err := c.Registry.Get(ctx, StrategyDataKey)
		if err == nil {
			_, err = c.Registry.Put(ctx, StrategyDataKey, data, e.Revision)
		}
		if !errors.Is(err, bus.ErrStale) {
			return err
		}
	}
}

// Tune changes settings of a crawl that was started: those that f returns, which is told the record and may be called
// again. One without values is left out from now on.
func (c Control) Tune(ctx context.Context, f func(desired.Record) (map[string][]string, error)) error {
	return c.change(ctx, func(r *desired.Record) error {
		if r.Settings == nil {
			return desired.ErrNotStarted
		}
		settings, err := f(*r)
		if err != nil {
			return err
		}
		r.AddChange(c.By, desired.DescribeSettings(settings))
		return r.ChangeSettings(settings)
	})
}

// Set changes the state: to desired.Paused, Running (of one that is paused), or Stopping.
func (c Control) Set(ctx context.Context, to desired.State) error {
	return c.change(ctx, func(r *desired.Record) error {
		if err := r.Set(to); err != nil {
			return err
		}
		r.AddChange(c.By, to.Verb())
		return nil
	})
}

// StopAtLimit stops a crawl that runs because it has the pages it was to have.
func (c Control) StopAtLimit(ctx context.Context) error {
	return c.change(ctx, func(r *desired.Record) error { r.StopAtLimit(); return nil })
}

// Add adds seeds to a crawl that is not done.
func (c Control) Add(ctx context.Context, seeds []string) error {
	r, _, err := c.Record(ctx)
	if err == nil {
		err = r.CheckAdd()
	}
	if err != nil {
		return err
	}
	if err := c.AddSeeds(ctx, slices.Values(seeds)); err != nil {
		return err
	}
	return c.change(ctx, func(r *desired.Record) error {
		r.AddChange(c.By, desired.DescribeAdded(len(seeds)))
		return nil
	})
}

// AddSeeds puts seeds where all nodes find them, whatever the crawl's state, chunk by chunk: there may be more of them than
// fit into memory.
func (c Control) AddSeeds(ctx context.Context, seeds iter.Seq[string]) error {
	for lines := range desired.SeedLists(seeds) {
		if err := c.addChunk(ctx, lines); err != nil {
			return fmt.Errorf("add seeds: %w", err)
		}
	}
	return nil
}

// addChunk puts a chunk behind those there are, then counts it. What is there and is not counted was left by one who
// died in between; it is counted, too.
func (c Control) addChunk(ctx context.Context, lines string) error {
	for {
		r, _, err := c.Record(ctx)
		if err != nil {
			return err
		}
		number := r.Seeds
		_, err = c.Registry.Put(ctx, seedsKey(number), []byte(lines), 0)
		switch {
		case errors.Is(err, bus.ErrStale), errors.Is(err, bus.ErrUnavailable):
			e, failed := c.Registry.Get(ctx, seedsKey(number))
			if failed != nil {
				return failed
			}
			if e.Value == nil {
				continue
			}
			if err := c.countChunk(ctx, number); err != nil {
				return err
			}
			if string(e.Value) == lines { // an earlier try of this one, or the very same
				return nil
			}
			continue
		case err != nil:
			return err
		}
		return c.countChunk(ctx, number)
	}
}

// countChunk makes the record say that there is a chunk. A crawl that was done has something to do again once it is started.
func (c Control) countChunk(ctx context.Context, number uint64) error {
	return c.change(ctx, func(r *desired.Record) error {
		r.Seeds = max(r.Seeds, number+1)
		return nil
	})
}

func seedsKey(chunk uint64) string { return seedsPrefix + strconv.FormatUint(chunk, 10) }

// PlaceKey is where the registry has the place of a node's record files: its URL, with the options by which it is
// reached. There is none where they stay on the node's disk. It goes with the node's log.
func PlaceKey(n strategy.Node) string { return "places/" + string(n) }
