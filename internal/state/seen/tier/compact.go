package tier

import (
	"context"
	"errors"
	"slices"

	"kumo/internal/state/seen/run"
)

// maxCuts is the number of cuts above which all runs are merged into one, so that checking each cut does not become
// expensive.
const maxCuts = 64

// Compact merges one full tier, and reports whether there was one.
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
		return true, s.drop(h) // the new run has keys that were cut since: retry
	}
	edit := func(v *View) { v.runs = replace(v.runs, old, h) }
	return true, s.installAlone(edit, func(*Manifest) {}, []*handle{h}, old)
}

// full returns the runs of the lowest full tier, and of the tiers that become full in turn.
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
