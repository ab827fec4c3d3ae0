package entry

import "slices"

// A SeedListMark records how much of a seed list was read. A run with the same list resumes there.
type SeedListMark struct {
	Digest string // of the list's bytes; identifies the list
	Name   string // for messages to the user
	Seeds  int64  // total number
	Taken  int64  // number of seeds read
	Offset int64  // byte offset after them
	Done   bool   // the list was read completely
}

// SeedList writes how much of a seed list was read.
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

// UpdateMarks returns marks with m in place of an older mark of the same list. It does not change marks.
func UpdateMarks(marks []SeedListMark, m SeedListMark) []SeedListMark {
	rest := slices.DeleteFunc(slices.Clone(marks), func(old SeedListMark) bool { return old.Digest == m.Digest })
	return append(rest, m)
}
