package frontier

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"kumo/internal/base/vfs"
)

// A segmentWriter writes extents to their files and removes files that are out of use, without the frontier's lock.
// Only the holder of the disk may use it (see diskWorker).
type segmentWriter struct {
	mu       *sync.Mutex // the frontier's, which guards the segments
	segments *segments
	pages    *pager

	file    vfs.File // of the segment written last; nil if none is open
	segment *segment
}

// writeExtents writes all extents but the open one.
func (w *segmentWriter) writeExtents() error {
	behind := &w.segments.behind
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := len(behind.extents); n > 0 && behind.first() != nil; n-- {
		p := behind.first()
		w.mu.Unlock()
		err := w.write(p)
		w.mu.Lock()
		if err != nil {
			return err
		}
		behind.drop()
	}
	return nil
}

// write writes the rest of an extent to its file. After an error it may be called again: nothing is lost or torn.
func (w *segmentWriter) write(p *extent) error {
	name := w.segments.folder.segment(p.segment.id)
	if w.segment != p.segment {
		if err := w.closeFile(); err != nil {
			return err
		}
		file, err := w.segments.folder.disk.Append(name)
		if err != nil {
			return fmt.Errorf("make a segment of the frontier: %w", err)
		}
		w.file, w.segment = file, p.segment
	}
	n, err := w.file.Write(p.data[p.written:])
	p.written += n // a retry does not write these bytes again
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (w *segmentWriter) closeFile() error {
	if w.file == nil {
		return nil
	}
	file := w.file
	w.file, w.segment = nil, nil
	return file.Close()
}

// removeSegments removes doomed segments, except those that have yet to be written.
func (w *segmentWriter) removeSegments() {
	retained := &w.segments.retained
	w.mu.Lock()
	var doomed []*segment
	retained.removable = slices.DeleteFunc(retained.removable, func(seg *segment) bool {
		if w.segments.behind.has(seg) {
			return false
		}
		doomed = append(doomed, seg)
		return true
	})
	surplus := w.pages.duplicates
	w.pages.duplicates = nil
	w.mu.Unlock()
	for _, src := range surplus {
		_ = src.Close() // it was only read
	}
	for i, seg := range doomed {
		if err := w.remove(seg); err != nil {
			w.mu.Lock()
			retained.dead = append(retained.dead, doomed[i:]...) // retried later
			w.mu.Unlock()
			return
		}
	}
}

// remove removes a segment's file.
func (w *segmentWriter) remove(seg *segment) error {
	var err error
	if w.segment == seg {
		err = w.closeFile()
	}
	if seg.src != nil {
		_ = seg.src.Close() // it was only read
		seg.src = nil
	}
	return errors.Join(err, w.segments.folder.disk.Remove(w.segments.folder.segment(seg.id)))
}

// sync makes a segment durable. It needs no lock.
func (w *segmentWriter) sync(id uint32) error {
	f, err := w.segments.folder.disk.Append(w.segments.folder.segment(id))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// close writes all extents and closes all files.
func (w *segmentWriter) close() error {
	s := w.segments
	w.mu.Lock()
	s.behind.seal()
	w.mu.Unlock()
	err := errors.Join(w.writeExtents(), w.closeFile())
	w.removeSegments()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, seg := range slices.AppendSeq(slices.Concat(s.retained.dead, s.retained.removable), maps.Values(s.all)) {
		if seg.src != nil {
			err = errors.Join(err, seg.src.Close())
			seg.src = nil
		}
	}
	return err
}
