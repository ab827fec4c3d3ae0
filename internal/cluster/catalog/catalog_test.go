package catalog

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/inproc"
)

// The first entry of a name stays; all crawls are listed by name, and a watcher sees each.
func TestCatalog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { testCatalog(t, registry(t)) })
}

func registry(t *testing.T) bus.Registry {
	t.Helper()
	b, err := inproc.New(1).Join("one")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func testCatalog(t *testing.T, r bus.Registry) {
	ctx := t.Context()
	if _, err := Get(ctx, r, "news"); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown crawl: %v", err)
	}
	for _, c := range []Crawl{{Name: "news", Strategy: "shard"}, {Name: "docs", Strategy: "hub"}} {
		if is, err := Add(ctx, r, c); err != nil || is != c {
			t.Errorf("%+v, %v", is, err)
		}
	}
	if is, err := Add(ctx, r, Crawl{Name: "news", Strategy: "balance"}); err != nil || is.Strategy != "shard" {
		t.Errorf("the second entry of a name replaces the first: %+v, %v", is, err)
	}
	all, err := List(ctx, r)
	if err != nil || len(all) != 2 || all[0].Name != "docs" || all[1].Name != "news" {
		t.Errorf("%+v, %v", all, err)
	}
	watching, stop := context.WithCancel(ctx)
	var seen []string
	_ = Watch(watching, r, func(c Crawl) { // ends with ctx
		if seen = append(seen, c.Name); len(seen) == 2 {
			stop()
		}
	})
	if len(seen) != 2 {
		t.Errorf("seen: %q", seen)
	}
}
