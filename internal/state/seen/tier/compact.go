package tier

import (
	"context"
	"errors"
	"slices"

	"kumo/internal/state/seen/run"
)

// maxCuts is how many ranges of keys may be gone before all runs are merged into one, so that looking at each does not
// become dear.
const maxCuts = 64

// Compact merges one tier that is full, and reports whether there was one.
func (s *Set) Compact(ctx context.Context) (done bool, err error) {
	s.compact.Lock()
	defer s.compact.Unlock()
	v := s.Pin()
	defer func() { err = errors.Join(err, v.Release()) }()
	old := full(v.runs, s.cfg.Ratio)
	if len(v.cuts) > maxCuts {
		old = v.runs
	}
	if len(old) == 0 {
		return false, nil
	}
	sources := make([]run.Source, len(old))
	for i, h := range old {
		sources[i] = v.rest(h, h.Iter())
	}
	h, err := s.write(ctx, run.Merge(s.cfg.Merge, sources...), old[len(old)-1].run.Tier+1, true)
	if err != nil {
		return false, err
	}
	s.commit.Lock()
	defer s.commit.Unlock()
	if s.View().cutSince(v) {
		return true, s.drop(h) // it has keys that are gone by now: once more
	}
	edit := func(v *View) { v.runs = replace(v.runs, old, h) }
	return true, s.installAlone(edit, func(*Manifest) {}, []*handle{h}, old)
}

// full returns the runs of the lowest full tier, and those of the tiers that it would fill in turn.
func full(runs []*handle, ratio int) []*handle {
	for from := 0; from < len(runs); {
		to, tier := from, runs[from].run.Tier
		for to < len(runs) && runs[to].run.Tier == tier {
			to++
		}
		if to-from < ratio {
			from = to
			continue
		}
		for end := to; end < len(runs); to = end {
			for end < len(runs) && runs[end].run.Tier == runs[to].run.Tier {
				end++
			}
			if runs[to].run.Tier != tier+1 || end-to+1 < ratio {
				break
			}
			tier++
		}
		return runs[from:to]
	}
	return nil
}

func replace(runs, old []*handle, h *handle) []*handle {
	at, fresh := 0, []*handle{h}
	if len(old) > 0 {
		at = slices.Index(runs, old[0])
	}
	if h == nil {
		fresh = nil
	}
	return slices.Replace(slices.Clone(runs), at, at+len(old), fresh...)
}
