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

// A Mark is a length at which a file contained whole records only. The name is relative to the crawl's folder, and is
// the file's name while it is open.
type Mark struct {
	Name   string
	Length int64
}

// A Store writes records. Put and PutSkip are safe for concurrent use. The other methods are called by one goroutine at
// a time. During Mark, no Put or PutSkip is running.
type Store interface {
	// Put writes a record. It does not retain rec or anything in it, and may set rec.Location. After an error, the
	// store must be closed and opened again. If the disk is full, vfs.IsFull reports true for the error.
	Put(rec *page.Record) error
	// PutSkip writes a record of a URL that was excluded.
	PutSkip(skip *page.Skip) error
	// Mark passes all written data to the operating system and returns the length of every open file.
	Mark() ([]Mark, error)
	// Sync makes the data of the last Mark durable. Puts may run at the same time.
	Sync() error
	// Finalize is called after the lengths of the last Mark were journaled. The store may now give full files their
	// final names.
	Finalize() error
	// Close completes all files. It is called after a last Mark, Sync and Finalize. Data put after the last Mark is
	// dropped, so that files and journal agree if these calls fail.
	Close() error
}
