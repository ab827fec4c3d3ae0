package node

import (
	"cmp"
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

// RecordKey is the registry key of the crawl's record.
const RecordKey = "crawl"

const (
	seedsPrefix      = "seeds/"
	takenSuffix      = "/taken"
	scopeSeedsPrefix = "roots/"
)

// A Control reads and changes a crawl's record. It does not need a node.
type Control struct {
	Registry bus.Registry
	By       string // the author, for the record's history
}

// Record reads the record and its revision; 0 if there is none yet.
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

// change changes the record, with retries until ctx ends. f may see a record to which an earlier attempt has already
// applied it.
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

// retryError returns the error to report when ctx has ended: ctx's own error after a cancellation, otherwise that of
// the last attempt.
func retryError(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case !errors.Is(cause, context.DeadlineExceeded):
		return cause
	case err == nil || errors.Is(err, cause) && !errors.Is(err, bus.ErrUnavailable):
		return bus.ErrUnavailable
	}
	return err
}

// Start starts the crawl with seeds, or resumes it. The settings are those of the first start. A later start may only
// change settings that nodes read from the record while they run.
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

// SetStrategyData stores data for the strategy before the crawl is started. It replaces earlier data.
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

// Tune changes settings of a started crawl to those that f returns. f receives the record and may be called again. A
// setting without values is removed.
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

// Set changes the state to desired.Paused, desired.Running (if it is paused) or desired.Stopping.
func (c Control) Set(ctx context.Context, to desired.State) error {
	return c.change(ctx, func(r *desired.Record) error {
		if err := r.Set(to); err != nil {
			return err
		}
		r.AddChange(c.By, to.Verb())
		return nil
	})
}

// StopAtLimit stops a crawl that has reached a limit.
func (c Control) StopAtLimit(ctx context.Context, why string) error {
	return c.change(ctx, func(r *desired.Record) error { r.StopAtLimit(why); return nil })
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

// AddSeeds stores seeds for all nodes in chunks, in any state of the crawl. There may be more than fit into memory.
func (c Control) AddSeeds(ctx context.Context, seeds iter.Seq[string]) error {
	for lines := range desired.SeedLists(seeds) {
		if err := c.addChunk(ctx, lines); err != nil {
			return fmt.Errorf("add seeds: %w", err)
		}
	}
	return nil
}

// addChunk stores a chunk under the next number and counts it. If that number is taken but not counted, its author
// failed in between; it is then counted, too.
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
			if string(e.Value) == lines { // stored by an earlier attempt, or identical
				return nil
			}
			continue
		case err != nil:
			return err
		}
		return c.countChunk(ctx, number)
	}
}

// countChunk counts a chunk in the record. A finished crawl then has work again once it is started.
func (c Control) countChunk(ctx context.Context, number uint64) error {
	return c.change(ctx, func(r *desired.Record) error {
		r.Seeds = max(r.Seeds, number+1)
		return nil
	})
}

func seedsKey(chunk uint64) string { return seedsPrefix + strconv.FormatUint(chunk, 10) }

// PlaceKey returns the registry key of the storage location of a node's record files: its URL with connection options.
// The key does not exist if the files stay on the node's disk. It is deleted with the node's log.
func PlaceKey(n strategy.Node) string { return "places/" + string(n) }

// SentKey returns the registry key of how many bytes of a node's pages.jsonl each sink has acknowledged: a JSON object
// by the sinks' names. It is deleted with the node's log.
func SentKey(n strategy.Node) string { return "sent/" + string(n) }

// DrainKey returns the registry key of a user's request that a node leaves. Its value is the user.
func DrainKey(n strategy.Node) string { return "drain/" + string(n) }

// Drain requests that a node hands over its hosts, leaves and ends. It can be repeated.
func (c Control) Drain(ctx context.Context, n strategy.Node) error {
	key := DrainKey(n)
	for {
		e, err := c.Registry.Get(ctx, key)
		if err != nil || e.Value != nil {
			return err
		}
		if _, err = c.Registry.Put(ctx, key, []byte(cmp.Or(c.By, "a user")), e.Revision); !errors.Is(err, bus.ErrStale) {
			return err
		}
	}
}

// ForgetDrain deletes the request of Drain, after the node has left.
func (c Control) ForgetDrain(ctx context.Context, n strategy.Node) error {
	e, err := c.Registry.Get(ctx, DrainKey(n))
	if err == nil && e.Value != nil {
		err = c.Registry.Delete(ctx, e.Key, e.Revision)
	}
	return err
}
