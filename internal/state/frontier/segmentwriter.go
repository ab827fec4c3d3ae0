package frontier

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"kumo/internal/base/vfs"
)

// A segmentWriter writes extents to their files and removes unused files, without holding the frontier's lock. Only the
// holder of the disk lock may use it (see diskWorker).
type segmentWriter struct {
	mu       *sync.Mutex // the frontier's lock, which guards the segments
	segments *segments
	pages    *pager

	file    vfs.File // file of the segment written last; nil if none is open
	segment *segment
}

// writeExtents writes all extents except the open one.
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

// write writes the rest of an extent to its file. After an error it may be called again; nothing is lost or written
// twice.
func (w *segmentWriter) write(p *extent) error {
	name := w.segments.folder.segment(p.segment.id)
	if w.segment != p.segment {
		if err := w.closeFile(); err != nil {
			return err
		}
		file, err := w.segments.folder.disk.Append(name)
		if err != nil {
			return fmt.Errorf("create a segment of the frontier: %w", err)
		}
		w.file, w.segment = file, p.segment
	}
	n, err := w.file.Write(p.data[p.written:])
	p.written += n // a retry continues after these bytes
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

// removeSegments removes the removable segments, except those that are not written yet.
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
		_ = src.Close() // read only
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
		_ = seg.src.Close() // read only
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
