package seen

import (
	"slices"

	"kumo/internal/state/seen/mem"
)

// Flags of a record in memory, beside its state.
const (
	pending   = 1 << (2 + iota) // a Later: what is on the disk decides, and news is to be told
	uncounted                   // known to be news, but whether the disk has it is not: it counts when that is
	counted                     // nowhere else: it is in known
)

// Words of a record in memory.
const (
	wordDepth = iota
	wordFirst
	wordPayload
	wordMeta
)

// Records are what memory and the disk have of URLs.
type records struct {
	store
	clock
	depths bool
	known  int64 // guarded by mu
	merges int64 // guarded by mu
}

// lookUp finds what memory knows of url, and where the active part has it.
func (r *records) lookUp(url string) (ref mem.Ref, e entry, flags uint8) {
	ref = r.active.Find(url)
	e, flags = r.lookUpAt(url, ref)
	return ref, e, flags
}

// lookUpAt finds what memory knows of a URL that the active part has at ref.
func (r *records) lookUpAt(url string, ref mem.Ref) (e entry, flags uint8) {
	e, flags = read(r.active, ref)
	if e.state == Unknown && r.frozen != nil {
		e, flags = read(r.frozen, r.frozen.Find(url))
		flags &= pending // it is the frozen part that counts
	}
	return e, flags
}

func (r *records) judge(old entry, u *URL) News {
	if news := old.judge(u.State, u.Depth); news != Nearer || r.depths {
		return news
	}
	return Nothing
}

// enter writes an offer into the active part, at ref if the URL is there; first is the minute in which it was made.
func (r *records) enter(ref mem.Ref, u *URL, flags uint8, first uint32) {
	t := r.active
	ref = findOrAdd(t, ref, u.URL, first)
	if flags&counted != 0 && t.Flags(ref)&counted == 0 {
		r.known++
	}
	t.SetFlags(ref, flags|uint8(u.State))
	t.SetWord(ref, wordDepth, uint32(u.Depth))
	if flags&pending != 0 {
		t.SetWord(ref, wordPayload, uint32(t.Keep(u.Payload)))
	}
}

// findOrAdd returns the record of url, which is ref if that is not 0, first met at a minute at the latest.
func findOrAdd(t *mem.Table, ref mem.Ref, url string, first uint32) mem.Ref {
	if ref == 0 {
		ref = t.Add(url)
	} else if first >= t.Word(ref, wordFirst) {
		return ref
	}
	t.SetWord(ref, wordFirst, first)
	return ref
}

func read(t *mem.Table, ref mem.Ref) (e entry, flags uint8) {
	if ref == 0 {
		return e, 0
	}
	flags = t.Flags(ref)
	return entry{State(flags & stateBits), int32(t.Word(ref, wordDepth))}, flags &^ stateBits
}

// insertKnown enters a URL; may says whether the disk may have it, if memory has not.
func (r *records) insertKnown(u *URL, may bool, now uint32) {
	ref, old, flags := r.lookUp(u.URL)
	told := entry{u.State, u.Depth}
	switch {
	case flags&pending != 0 && r.judge(told, &URL{State: old.state, Depth: old.depth}) != Nothing:
		return
	case flags&counted != 0:
	case old.state != Unknown || may:
		flags = uncounted
	default:
		flags = counted
	}
	best := *u
	if r.judge(old, u) == Nothing {
		best.State, best.Depth = old.state, old.depth
	}
	r.enter(ref, &best, flags, now)
}

// updateMeta adds meta that was found at a time, in minutes.
func (r *records) updateMeta(url string, meta []byte, at uint32) {
	t := r.active
	ref := findOrAdd(t, t.Find(url), url, at)
	meta = joinMeta(meta, t.Kept(mem.Ref(t.Word(ref, wordMeta))))
	t.SetWord(ref, wordMeta, uint32(t.Keep(meta)))
}

func (r *records) find(url string) record {
	all := emptyRecord()
	for _, t := range r.tables() {
		if ref := t.Find(url); ref != 0 {
			one := load(t, ref)
			one.meta = slices.Clone(one.meta)
			all.join(one)
		}
	}
	return all
}

// pendingInMemory returns the payload of an offer that is not decided. The caller holds mu.
func (r *records) pendingInMemory(url string) ([]byte, bool) {
	for _, t := range r.tables() {
		if ref := t.Find(url); ref != 0 && t.Flags(ref)&pending != 0 {
			return slices.Clone(t.Kept(mem.Ref(t.Word(ref, wordPayload)))), true
		}
	}
	return nil, false
}

// addMemory adds what memory has of a URL to what the disk had after so many merges. It returns false where there were
// more since.
func (r *records) addMemory(url string, onDisk *record, merges int64) bool {
	r.mu.Lock()
	all, same := r.find(url), r.merges == merges
	r.mu.Unlock()
	all.join(*onDisk)
	*onDisk = all
	return same
}

// mergeOffers makes one waiting offer of two: the older, unless the newer is better.
func (r *records) mergeOffers(newer, older []byte) []byte {
	payload, a, okA := readLate(newer)
	was, b, okB := readLate(older)
	if !okA || !okB {
		return newer
	}
	if r.judge(b.entry, &URL{State: a.state, Depth: a.depth}) == Nothing {
		a.entry, payload = b.entry, was
	}
	a.first = min(a.first, b.first)
	return appendLate(nil, payload, &a)
}
