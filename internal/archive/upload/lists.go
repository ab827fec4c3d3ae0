package upload

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"kumo/internal/archive/away"
	"kumo/internal/state/store"
)

// maxUnsent is the growth of lists at which parts are uploaded even without a new WARC file.
const maxUnsent = 64 << 20

// lists guards the upload of growing lists in parts.
//
// Invariants: a part continues the uploaded list; otherwise the list is uploaded whole. Parts are recorded together, so
// that all lists reach up to the same time. They are uploaded before WARC files that were found to be closed, so that
// the manifest lists no WARC file without its lines.
type lists struct {
	cfg    *Config
	sender *sender
	ledger interface {
		record(...away.Entry) error
	}
	there      *away.Manifest
	contiguous map[string]bool // whether a list continues the uploaded one, as far as checked; used only by Run

	mu            sync.Mutex       // guards the fields below
	durable, sent map[string]int64 // lengths that are durable, and that this process has uploaded in parts
	due           bool             // lists have grown by maxUnsent
}

// Durable sets the lengths up to which growing files are durable. A file is closed only after these lengths include its
// lines. Durable does not block.
func (u *Uploader) Durable(marks []store.Mark) {
	if u.lists.grow(marks) {
		u.FileClosed()
	}
}

// grow sets the durable lengths, and reports whether parts have become due.
func (l *lists) grow(marks []store.Mark) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	grown := int64(0)
	for _, m := range marks {
		if slices.Contains(l.cfg.Grow, m.Name) {
			l.durable[m.Name] = m.Length
			grown += m.Length - l.sent[m.Name]
		}
	}
	if grown <= maxUnsent || l.due {
		return false
	}
	l.due = true
	return true
}

// partsDue reports whether lists have grown by maxUnsent.
func (l *lists) partsDue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.due
}

// upload uploads the growth of lists, and reports whether there was any.
func (l *lists) upload(ctx context.Context) (any bool, err error) {
	l.mu.Lock()
	lengths := map[string]int64{}
	for name, length := range l.durable {
		if length > l.sent[name] {
			lengths[name] = length
		}
	}
	l.mu.Unlock()
	var came []away.Entry
	for _, name := range l.cfg.Grow {
		to := lengths[name]
		if to == 0 {
			continue
		}
		e, err := l.uploadPart(ctx, name, to)
		if away.IsMissing(err) { // the list was moved away
			continue
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		if e.Name != "" {
			came = append(came, e)
		}
	}
	if err := l.ledger.record(came...); err != nil {
		return false, err
	}
	for _, e := range came {
		if list, _, is := away.ParsePartName(e.Name); is {
			l.contiguous[list] = true
		} else {
			l.contiguous[e.Name] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, length := range lengths {
		l.sent[name] = length
	}
	l.due = false
	return len(came) > 0, nil
}

// uploadPart uploads a list up to a length: the part after the uploaded ones, or the whole list if it does not continue
// them.
func (l *lists) uploadPart(ctx context.Context, name string, to int64) (e away.Entry, err error) {
	src, err := l.cfg.Disk.OpenAt(l.cfg.path(name))
	if err != nil {
		return e, err
	}
	defer func() { _ = src.Close() }() // opened for reading only
	from := l.there.Length(name)
	at := away.PartName(name, from)
	if from > 0 {
		joins, known := l.contiguous[name]
		if !known {
			if joins, err = l.continues(ctx, name, src); err != nil {
				return e, err
			}
			l.contiguous[name] = joins
		}
		if !joins { // set again when recorded
			from, at = 0, name
		}
	}
	if from >= to {
		return e, nil
	}
	part := io.NewSectionReader(src, from, to-from)
	sum, err := digestOf(part)
	if err == nil {
		err = l.sender.put(ctx, at, part, to-from, sum)
	}
	return away.Entry{Name: at, Size: to - from, SHA256: hex.EncodeToString(sum[:]), Time: time.Now().UTC()}, err
}

// tailSize is how many bytes at the end of an uploaded list are compared with the local one.
const tailSize = 64 << 10

// continues reports whether a list continues the uploaded one; a repair may have changed it.
func (l *lists) continues(ctx context.Context, name string, src io.ReaderAt) (bool, error) {
	parts := l.there.Parts(name)
	last := parts[len(parts)-1]
	n := min(last.Size, tailSize)
	in, err := l.cfg.Place.Open(ctx, last.Name, last.Size-n, n)
	if away.IsMissing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	there, err := io.ReadAll(in)
	if err = errors.Join(err, in.Close()); err != nil {
		return false, err
	}
	here := make([]byte, n)
	if _, err := src.ReadAt(here, l.there.Length(name)-n); errors.Is(err, io.EOF) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return bytes.Equal(there, here), nil
}
