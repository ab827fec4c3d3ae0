package seen

import (
	"slices"

	"kumo/internal/state/seen/mem"
)

// Flags of a record in memory, besides its state.
const (
	pending   = 1 << (2 + iota) // undecided: the disk decides, and news must be delivered
	uncounted                   // known to be new; it counts if it is not on disk
	counted                     // not on disk, and counted in known
)

// Words of a record in memory.
const (
	wordDepth = iota
	wordFirst
	wordPayload
	wordMeta
)

// records has the data about URLs in memory and on disk.
type records struct {
	store
	clock
	depths bool
	known  int64 // guarded by mu
	merges int64 // guarded by mu
}

// lookUp returns the data about url in memory, and its record in the active part.
func (r *records) lookUp(url string) (ref mem.Ref, e entry, flags uint8) {
	ref = r.active.Find(url)
	e, flags = r.lookUpAt(url, ref)
	return ref, e, flags
}

// lookUpAt returns the data in memory about a URL whose record in the active part is ref.
func (r *records) lookUpAt(url string, ref mem.Ref) (e entry, flags uint8) {
	e, flags = read(r.active, ref)
	if e.state == Unknown && r.frozen != nil {
		e, flags = read(r.frozen, r.frozen.Find(url))
		flags &= pending // the frozen part counts it
	}
	return e, flags
}

func (r *records) judge(old entry, u *URL) News {
	if news := old.judge(u.State, u.Depth); news != Nearer || r.depths {
		return news
	}
	return Nothing
}

// enter writes an offer to the active part, at ref if the URL is there; first is the minute of the offer.
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

// findOrAdd returns the record of url, which is ref if that is not 0. Its first minute becomes first unless it is
// earlier.
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

// insertKnown adds a URL; may is whether the disk may have it, if memory does not.
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

// updateMeta adds meta that was found in a minute.
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

// pendingInMemory returns the payload of an undecided offer. The caller holds mu.
func (r *records) pendingInMemory(url string) ([]byte, bool) {
	for _, t := range r.tables() {
		if ref := t.Find(url); ref != 0 && t.Flags(ref)&pending != 0 {
			return slices.Clone(t.Kept(mem.Ref(t.Word(ref, wordPayload)))), true
		}
	}
	return nil, false
}

// addMemory adds the data about a URL in memory to that on disk, which was read after the given number of merges. It
// returns false if there were more merges since.
func (r *records) addMemory(url string, onDisk *record, merges int64) bool {
	r.mu.Lock()
	all, same := r.find(url), r.merges == merges
	r.mu.Unlock()
	all.join(*onDisk)
	*onDisk = all
	return same
}

// mergeOffers merges two undecided offers: the older one wins, unless the newer is better.
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
