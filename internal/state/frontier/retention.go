package frontier

import (
	"errors"
	"fmt"
	"slices"
)

// A retention keeps segment files that are out of use for as long as a checkpoint names them or an iterator reads them,
// and counts what is in use at a cut. The frontier's lock guards it.
type retention struct {
	era        int              // counts checkpoints
	durableEra int              // the last era whose checkpoint is durable, 0 if none is
	cutting    bool             // a checkpoint is being written
	atCut      bool             // changes of use that are counted now belong to the checkpoint too
	cutLive    map[uint32]int64 // bytes in use at the cut, by segment
	unsynced   map[uint32]bool  // segments whose ends may not be durable
	broken     error            // a sync or rename failed: no checkpoint can be trusted any more
	dead       []*segment       // out of use, but named by a checkpoint, or read
	removable  []*segment       // to be removed by the segmentWriter
	pins       int              // readers for which dead segments stay
}

// count adds to the bytes in use at the cut if the change belongs to it.
func (r *retention) count(seg *segment, n int64) {
	if r.atCut {
		r.cutLive[seg.id] += n
	}
}

// add takes a segment that went out of use.
func (r *retention) add(seg *segment) {
	if seg.died = r.era; r.cutting {
		seg.died++ // after the cut
	}
	r.dead = append(r.dead, seg)
	r.collect()
}

// pin keeps all dead segments until unpin.
func (r *retention) pin() { r.pins++ }

func (r *retention) unpin() {
	r.pins--
	r.collect()
}

// pinned returns a dead segment that stays for a reader.
func (r *retention) pinned(id uint32) *segment {
	if r.pins == 0 {
		return nil
	}
	for _, seg := range r.dead {
		if seg.id == id {
			return seg
		}
	}
	return nil
}

// namedBy reports whether the checkpoint that ended an era may name the segment.
func (s *segment) namedBy(era int) bool { return s.era <= era && s.died > era }

// collect marks dead segments for removal that no checkpoint names and nobody reads.
func (r *retention) collect() {
	if len(r.dead) == 0 || r.broken != nil || r.pins > 0 {
		return // it is unknown which checkpoint holds, or what is read
	}
	r.dead = slices.DeleteFunc(r.dead, func(seg *segment) bool {
		if seg.readers > 0 || seg.namedBy(r.durableEra) || r.cutting && seg.namedBy(r.era) {
			return false
		}
		delete(r.unsynced, seg.id)
		r.removable = append(r.removable, seg)
		return true
	})
}

// initHost records how much of each segment is in use at a cut.
func (r *retention) begin(all map[uint32]*segment) error {
	var busy error
	if r.cutting {
		busy = errors.New("another one is being written")
	}
	if r.broken != nil || busy != nil {
		return fmt.Errorf("begin a checkpoint of the frontier: %w", errors.Join(r.broken, busy))
	}
	r.cutting, r.cutLive = true, make(map[uint32]int64, len(all))
	for id, seg := range all {
		r.cutLive[id] = seg.live
	}
	return nil
}

// end ends a checkpoint.
func (r *retention) end(durable bool) {
	if durable {
		r.durableEra = r.era
	}
	r.era++
	r.cutting, r.cutLive = false, nil
	r.collect()
}

// reopen begins an era after a checkpoint that was read.
func (r *retention) reopen() {
	r.durableEra = r.era
	r.era++
}

// named lists the segments that the checkpoint needs, sorted.
func (r *retention) named(all map[uint32]*segment) (named []*segment) {
	for _, seg := range all {
		if r.cutLive[seg.id] > 0 {
			named = append(named, seg)
		}
	}
	for _, seg := range r.dead {
		if r.cutLive[seg.id] > 0 {
			named = append(named, seg)
		}
	}
	slices.SortFunc(named, func(a, b *segment) int { return int(a.id) - int(b.id) })
	return named
}
