package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"kumo/internal/cluster/bus"
)

// A picture is a registry as it was once. Nothing can be written to it.
type picture struct{ entries []bus.Entry }

var _ bus.Registry = (*picture)(nil)

func newPicture(entries []bus.Entry) *picture {
	slices.SortFunc(entries, func(a, b bus.Entry) int { return cmp.Compare(a.Revision, b.Revision) })
	return &picture{entries}
}

func (p *picture) Put(_ context.Context, key string, _ []byte, _ uint64) (uint64, error) {
	return 0, fmt.Errorf("write %s: %w", key, bus.ErrUnavailable)
}

func (p *picture) Delete(ctx context.Context, key string, rev uint64) error {
	_, err := p.Put(ctx, key, nil, rev)
	return err
}

func (p *picture) Get(_ context.Context, key string) (bus.Entry, error) {
	for _, e := range p.entries {
		if e.Key == key {
			return e, nil
		}
	}
	return bus.Entry{}, nil
}

func (p *picture) Watch(ctx context.Context, prefix string, f func(bus.Entry)) error {
	for _, e := range p.entries {
		if strings.HasPrefix(e.Key, prefix) {
			f(e)
		}
	}
	f(bus.Entry{})
	<-ctx.Done()
	return ctx.Err()
}
