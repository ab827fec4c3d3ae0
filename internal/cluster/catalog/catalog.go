// Package catalog lists the crawls of servers that several crawls share. A crawl is added by its first start, and
// stays.
package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kumo/internal/cluster/bus"
)

// A Crawl is an entry of the catalog. It contains what a node needs before it can join the crawl.
type Crawl struct {
	Name     string    `json:"name"`
	Strategy string    `json:"strategy"`           // as for kumo node --strategy
	Splitter string    `json:"splitter,omitempty"` // with strategy balance; "": the default
	Added    time.Time `json:"added"`              // by the clock of the user's machine
	By       string    `json:"by,omitempty"`
}

const prefix = "crawls/"

// ErrUnknown means that the catalog has no crawl of a name.
var ErrUnknown = errors.New("the cluster has no such crawl")

// Get returns a crawl, or ErrUnknown.
func Get(ctx context.Context, r bus.Registry, name string) (c Crawl, err error) {
	e, err := r.Get(ctx, prefix+name)
	switch {
	case err != nil:
		return c, fmt.Errorf("look up the crawl %q: %w", name, err)
	case e.Value == nil:
		return c, fmt.Errorf("crawl %q: %w", name, ErrUnknown)
	}
	return parse(e.Value)
}

func parse(value []byte) (c Crawl, err error) {
	if err := json.Unmarshal(value, &c); err != nil {
		return c, fmt.Errorf("read the catalog of crawls: %w", err)
	}
	return c, nil
}

// Add adds a crawl unless the catalog has it, and returns the catalog's entry. It is safe to repeat after an error.
func Add(ctx context.Context, r bus.Registry, c Crawl) (Crawl, error) {
	value, err := json.Marshal(c)
	if err != nil {
		return c, err
	}
	_, err = r.Put(ctx, prefix+c.Name, value, 0)
	if errors.Is(err, bus.ErrStale) {
		return Get(ctx, r, c.Name)
	}
	if err != nil {
		return c, fmt.Errorf("add the crawl %q: %w", c.Name, err)
	}
	return c, nil
}

// List returns all crawls, by name.
func List(ctx context.Context, r bus.Registry) (all []Crawl, err error) {
	found, err := bus.ReadAll(ctx, r, prefix)
	if err != nil {
		return nil, fmt.Errorf("list the crawls: %w", err)
	}
	for _, e := range found {
		c, err := parse(e.Value)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Crawl) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Watch calls f with all crawls and then with each new one, until ctx ends. f may see a crawl again.
func Watch(ctx context.Context, r bus.Registry, f func(Crawl)) error {
	return r.Watch(ctx, prefix, func(e bus.Entry) {
		if e.Value == nil {
			return
		}
		if c, err := parse(e.Value); err == nil { // otherwise of a newer version
			f(c)
		}
	})
}
