package kumo

import (
	"fmt"

	"kumo/internal/base/page"
	"kumo/internal/state/store"
)

// A Store keeps pages in a program's own way: in a database, say. The caller opens and closes it.
//
// A page is put before its URL counts as done, and its URL counts as done when Sync has returned after that. So with
// Out no page is lost, whenever the program is killed; what was put and not yet synced is fetched and put once more
// when the crawl goes on, so Put should replace what it has of the same URL. An error of either ends Run.
type Store interface {
	// Put takes a page. Many goroutines call it at once. All commits wait for it: what takes long should be done in Sync,
	// or beside it.
	Put(p *Page) error
	// Sync makes durable all for which Put had returned before it was called. It is called by one goroutine at a time,
	// some twenty times a second while pages come, and a last time before Run returns; Puts go on meanwhile.
	Sync() error
}

// storeAdapter is a Store as the engine knows them.
type storeAdapter struct{ own Store }

var _ store.Store = storeAdapter{}

func (k storeAdapter) Put(rec *page.Record) error {
	if rec.Failure != page.None || rec.Robots || rec.Response == nil {
		return nil
	}
	if err := k.own.Put(pageOf(rec)); err != nil {
		return fmt.Errorf("put the page into the program's store: %w", err)
	}
	return nil
}

func (k storeAdapter) Sync() error {
	if err := k.own.Sync(); err != nil {
		return fmt.Errorf("sync the program's store: %w", err)
	}
	return nil
}

// PutSkip does nothing: a Store has pages only.
func (k storeAdapter) PutSkip(*page.Skip) error { return nil }

// Mark has nothing to say: a Store cannot be cut back.
func (k storeAdapter) Mark() ([]store.Mark, error) { return nil, nil }

// Finalize does nothing.
func (k storeAdapter) Finalize() error { return nil }

// Close leaves that to the caller.
func (k storeAdapter) Close() error { return nil }
