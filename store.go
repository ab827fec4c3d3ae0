package kumo

import (
	"fmt"

	"kumo/internal/base/page"
	"kumo/internal/state/store"
)

// A Store stores pages for the program, for example in a database. The caller opens and closes it.
//
// A URL counts as done when its page was passed to Put and a later Sync has returned. With Out, therefore, no page is
// lost if the program is killed. Pages that were put but not synced are fetched and put again when the crawl resumes,
// so Put should replace an earlier page of the same URL. An error of Put or Sync ends Run.
type Store interface {
	// Put stores a page. It is called concurrently. All commits wait for it, so move slow work to Sync or to the
	// background.
	Put(p *Page) error
	// Sync makes all pages durable whose Put returned before Sync was called. Calls do not overlap. Sync is called
	// about twenty times per second while pages arrive, and once before Run returns; calls of Put continue
	// concurrently.
	Sync() error
}

// storeAdapter makes a Store usable by the engine.
type storeAdapter struct{ own Store }

var _ store.Store = storeAdapter{}

func (k storeAdapter) Put(rec *page.Record) error {
	if rec.Failure != page.None || rec.Robots || rec.Response == nil {
		return nil
	}
	if err := k.own.Put(pageOf(rec)); err != nil {
		return fmt.Errorf("put page into the program's store: %w", err)
	}
	return nil
}

func (k storeAdapter) Sync() error {
	if err := k.own.Sync(); err != nil {
		return fmt.Errorf("sync the program's store: %w", err)
	}
	return nil
}

// PutSkip does nothing: a Store gets only pages.
func (k storeAdapter) PutSkip(*page.Skip) error { return nil }

// Mark returns no marks: a Store cannot be truncated.
func (k storeAdapter) Mark() ([]store.Mark, error) { return nil, nil }

// Finalize does nothing.
func (k storeAdapter) Finalize() error { return nil }

// Close does nothing: the caller closes the Store.
func (k storeAdapter) Close() error { return nil }
