// Package store is the family of what a record looks like on disk. Each member writes records of a crawl to files of
// one form; the engine drives all of them alike and never knows which they are.
//
// Files grow at their end only. That is what lets a crawl survive a crash: before the engine journals that URLs are
// done, it asks each store for its Marks, the lengths that hold all records so far, makes them durable with Sync, and
// journals them in the same batch. A store that is opened again is given the journalled marks and cuts its files back
// to them, so that files and journal agree whatever happened in between.
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
	// Settle is called once the last Mark's lengths are journalled: files that are full may now get their final name.
	Settle() error
	// Close gives every file its final form. It is called after a last Mark, Sync and Settle; what was put since then is
	// not kept, so that files and journal agree when these fail.
	Close() error
}
