package frontier

import (
	"errors"
	"fmt"
	"slices"
)

// A retention keeps unused segment files as long as a checkpoint names them or an iterator reads them. It also counts
// the bytes in use at a cut. The frontier's lock guards it.
type retention struct {
	era        int              // number of the checkpoint in progress, or the next
	durableEra int              // last era whose checkpoint is durable; 0 if none
	cutting    bool             // a checkpoint is being written
	atCut      bool             // changes counted now also belong to the checkpoint
	cutLive    map[uint32]int64 // bytes in use at the cut, by segment
	unsynced   map[uint32]bool  // segments whose ends may not be durable
	broken     error            // a sync or rename failed, so no checkpoint can be trusted any more
	dead       []*segment       // unused, but named by a checkpoint, or read
	removable  []*segment       // to be removed by the segmentWriter
	pins       int              // number of readers that need dead segments
}

// count adds to the bytes in use at the cut, if the change belongs to the cut.
func (r *retention) count(seg *segment, n int64) {
	if r.atCut {
		r.cutLive[seg.id] += n
	}
}

// add adds a segment that is now unused.
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

// pinned returns a dead segment that is kept for a reader.
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

// namedBy reports whether the checkpoint at the end of an era may name the segment.
func (s *segment) namedBy(era int) bool { return s.era <= era && s.died > era }

// collect makes dead segments removable that no checkpoint names and nobody reads.
func (r *retention) collect() {
	if len(r.dead) == 0 || r.broken != nil || r.pins > 0 {
		return // a broken checkpoint may name them, or a reader need them
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

// begin records the bytes in use of each segment at a cut.
func (r *retention) begin(all map[uint32]*segment) error {
	var busy error
	if r.cutting {
		busy = errors.New("another checkpoint is being written")
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

// reopen begins the era after a checkpoint that was loaded.
func (r *retention) reopen() {
	r.durableEra = r.era
	r.era++
}

// named returns the segments that the checkpoint needs, sorted.
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
