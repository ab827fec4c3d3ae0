// Package store defines the interface of record stores, which write a crawl's records to files in various formats.
//
// Each implementation writes one format. The engine uses all of them alike, without knowing the format.
//
// Files only grow at their end, which makes crash recovery possible. Before the engine journals that URLs are done, it
// gets the Marks of each store, the lengths that include all records so far. It makes them durable with Sync, and
// journals them in the same batch. When a store is opened again, it gets the journaled marks and truncates its files to
// them. So files and journal agree after any crash.
package store

import "kumo/internal/base/page"

// A Mark is a file's length at which it held whole records only. The name is relative to the crawl's folder and is the
// name of the file while it is open.
type Mark struct {
	Name   string
	Length int64
}

// A Store keeps records. Put may be called by many goroutines at once; the other methods are called by one at a time,
// and none of Put and PutSkip runs during Mark.
type Store interface {
	// Put keeps a record. It does not hold on to rec or anything in it after it returns, and may fill in rec.Place. After
	// an error, of which vfs.IsFull may be true, the store has to be closed and opened again.
	Put(rec *page.Record) error
	// PutSkip keeps the word on a URL that was left out.
	PutSkip(skip *page.Skip) error
	// Mark hands all that was put to the operating system and returns the length of every open file.
	Mark() ([]Mark, error)
	// Sync makes durable what was there at the last Mark. Puts may go on meanwhile.
	Sync() error
	// Finalize is called once the last Mark's lengths are journalled: files that are full may now get their final name.
	Finalize() error
	// Close gives every file its final form. It is called after a last Mark, Sync and Settle; what was put since then is
	// not kept, so that files and journal agree when these fail.
	Close() error
}
