// Package memory implements a journal in memory that ends with its process, for tests.
package memory

import (
	"bytes"

	"kumo/internal/state/journal"
)

var _ journal.Journal = (*Journal)(nil)

// A Journal stores batches in memory. It can be used again after Close.
type Journal struct {
	first   journal.Position // position of the first batch
	batches [][]byte
	end     journal.Position
}

// New returns an empty journal.
func New() *Journal { return &Journal{} }

// Append stores a copy of the batch.
func (j *Journal) Append(batch []byte) error {
	if len(batch) > 0 {
		j.batches = append(j.batches, bytes.Clone(batch))
		j.end += journal.Position(len(batch))
	}
	return nil
}

// End returns the position after the last batch.
func (j *Journal) End() journal.Position { return j.end }

// Replay calls f with the batches after from.
func (j *Journal) Replay(from journal.Position, f func([]byte, journal.Position) error) error {
	if from < j.first {
		return journal.ErrDropped
	}
	at := j.first
	for _, b := range j.batches {
		at += journal.Position(len(b))
		if at <= from {
			continue
		}
		if err := f(b, at); err != nil {
			return err
		}
	}
	return nil
}

// Drop drops the batches that end at or before a position.
func (j *Journal) Drop(before journal.Position) error {
	for len(j.batches) > 0 && j.first+journal.Position(len(j.batches[0])) <= before {
		j.first += journal.Position(len(j.batches[0]))
		j.batches = j.batches[1:]
	}
	return nil
}

// Close does nothing; the batches remain.
func (j *Journal) Close() error { return nil }
