package entry

import "slices"

// A SeedListMark says how far a list of seeds was taken in. A run that is given the same list again goes on from there.
type SeedListMark struct {
	Digest string // of the list's bytes: tells it from others
	Name   string // by which a person knows it
	Seeds  int64  // how many it has
	Taken  int64  // of these, how many were taken in
	Offset int64  // behind them
	Done   bool   // nothing of it is left
}

// SeedList is how far a list of seeds was taken in.
func (e *Encoder) SeedList(m *SeedListMark) {
	e.Byte(kindSeedList)
	e.String(m.Digest)
	e.String(m.Name)
	e.Int(m.Seeds)
	e.Int(m.Taken)
	e.Int(m.Offset)
	e.Bool(m.Done)
}

func (d *Decoder) seedList() SeedListMark {
	return SeedListMark{Digest: d.String(), Name: d.String(), Seeds: d.Int(), Taken: d.Int(), Offset: d.Int(),
		Done: d.Bool()}
}

// UpdateMarks returns marks with one that takes the place of an older one of the same list. The slice is not changed.
func UpdateMarks(marks []SeedListMark, m SeedListMark) []SeedListMark {
	rest := slices.DeleteFunc(slices.Clone(marks), func(old SeedListMark) bool { return old.Digest == m.Digest })
	return append(rest, m)
}
