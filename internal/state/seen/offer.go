package seen

import (
	"strings"

	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/run"
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

// Offer enters urls and appends to news what each was. For those that are Fresh it replaces urls[i].URL with a copy
// that the caller may keep. A known URL met again at less depth takes that depth.
//
// Where news is Later, the URL may be known on the disk. A later merge decides, and then tells the best of all offers,
// with its Payload; offers that are no better than one that waits in memory are Nothing.
func (d *DB) Offer(urls []URL, news []News) []News {
	return d.OfferWith(urls, news, func(i int) []byte { return urls[i].Payload })
}

// OfferWith is Offer for who makes Payloads only where they are needed: where news is Later, urls[i].Payload becomes
// payload(i). The database must not be used in it.
func (d *DB) OfferWith(urls []URL, news []News, payload func(i int) []byte) []News {
	now := d.minutes()
	d.mu.Lock()
	defer d.mu.Unlock()
	may := d.probe(urls)
	for i := range urls {
		u := &urls[i]
		ref, n, flags := d.offer(u, d.searches[i].Ref, may[i])
		switch {
		case n == Later:
			u.Payload = payload(i)
			d.enter(ref, u, flags, now)
		case n != Nothing:
			d.enter(ref, u, flags, now)
		}
		if n == Fresh {
			u.URL = strings.Clone(u.URL)
		}
		news = append(news, n)
	}
	clear(d.searches)
	return news
}

// maybe says whether the disk may have a URL: asked of those alone that memory does not know.
type maybe bool

// probe asks for all URLs at once what memory knows, and then what filters say of the rest.
func (d *DB) probe(urls []URL) []maybe {
	d.may, d.probes, d.searches = d.may[:0], d.probes[:0], d.searches[:0]
	for i := range urls {
		d.searches = append(d.searches, mem.Search{Key: urls[i].URL})
	}
	d.active.FindAll(d.searches)
	for i := range urls {
		old, _ := d.lookUpAt(urls[i].URL, d.searches[i].Ref)
		d.may = append(d.may, maybe(old.state == Unknown))
		if old.state == Unknown {
			d.probes = append(d.probes, run.Probe{Key: urls[i].URL, Hash: run.HashString(urls[i].URL)})
		}
	}
	d.tiers.View().Probe(d.probes)
	asked := d.probes
	for i := range d.may {
		if d.may[i] {
			d.may[i], asked = maybe(asked[0].May), asked[1:]
		}
	}
	clear(d.probes)
	return d.may
}

// offer says what an offer brings, and what is to be entered for that: flags, at ref if memory has the URL. It is given
// where the active part had the URL before any of the same call was entered.
func (d *DB) offer(u *URL, at mem.Ref, may maybe) (ref mem.Ref, news News, flags uint8) {
	if ref = at; ref == 0 {
		ref = d.active.Find(u.URL)
	}
	old, flags := d.lookUpAt(u.URL, ref)
	news = d.judge(old, u)
	switch {
	case news == Nothing || old.state != Unknown:
	case bool(may):
		flags = pending
	default:
		flags = counted
	}
	if news != Nothing && flags&pending != 0 {
		news = Later
	}
	return ref, news, flags
}

// lookUp finds what memory knows of url, and where the active part has it.
func (d *DB) lookUp(url string) (ref mem.Ref, e entry, flags uint8) {
	ref = d.active.Find(url)
	e, flags = d.lookUpAt(url, ref)
	return ref, e, flags
}

// lookUpAt finds what memory knows of a URL that the active part has at ref.
func (d *DB) lookUpAt(url string, ref mem.Ref) (e entry, flags uint8) {
	e, flags = read(d.active, ref)
	if e.state == Unknown && d.frozen != nil {
		e, flags = read(d.frozen, d.frozen.Find(url))
		flags &= pending // it is the frozen part that counts
	}
	return e, flags
}

// judge is the news of an offer about what is known.
func (d *DB) judge(old entry, u *URL) News {
	if news := old.judge(u.State, u.Depth); news != Nearer || d.cfg.Depths {
		return news
	}
	return Nothing
}

// enter writes an offer into the active part, at ref if the URL is there; first is the minute in which it was made.
func (d *DB) enter(ref mem.Ref, u *URL, flags uint8, first uint32) {
	t := d.active
	if ref == 0 {
		ref = t.Add(u.URL)
		t.SetWord(ref, wordFirst, first)
	} else if first < t.Word(ref, wordFirst) {
		t.SetWord(ref, wordFirst, first)
	}
	if flags&counted != 0 && t.Flags(ref)&counted == 0 {
		d.known++
	}
	t.SetFlags(ref, flags|uint8(u.State))
	t.SetWord(ref, wordDepth, uint32(u.Depth))
	if flags&pending != 0 {
		t.SetWord(ref, wordPayload, uint32(t.Keep(u.Payload)))
	}
}

// read is what a record says of a URL; nothing where there is none.
func read(t *mem.Table, ref mem.Ref) (e entry, flags uint8) {
	if ref == 0 {
		return e, 0
	}
	flags = t.Flags(ref)
	return entry{State(flags & stateBits), int32(t.Word(ref, wordDepth))}, flags &^ stateBits
}

// InsertKnown enters URLs whose news was told before: what a journal says of the time after the database's position,
// before the next Freeze. No merge tells them again, unless a better offer waits.
func (d *DB) InsertKnown(urls []URL) {
	now := d.minutes()
	d.mu.Lock()
	defer d.mu.Unlock()
	view := d.tiers.View()
	for i := range urls {
		d.insertKnown(&urls[i], func(url string) bool { return view.May(url, run.HashString(url)) }, now)
	}
}

// insertKnown enters a URL; may says whether the disk has it, and is asked only if memory has not.
func (d *DB) insertKnown(u *URL, may func(url string) bool, now uint32) {
	ref, old, flags := d.lookUp(u.URL)
	told := entry{u.State, u.Depth}
	switch {
	case flags&pending != 0 && d.judge(told, &URL{State: old.state, Depth: old.depth}) != Nothing:
		return
	case flags&counted != 0:
	case old.state != Unknown || may(u.URL):
		flags = uncounted
	default:
		flags = counted
	}
	best := *u
	if d.judge(old, u) == Nothing {
		best.State, best.Depth = old.state, old.depth
	}
	d.enter(ref, &best, flags, now)
}

// Remembers appends to known of each URL whether memory knows it for certain, so that an offer of it would be Nothing.
func (d *DB) Remembers(urls []URL, known []bool) []bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range urls {
		_, e, flags := d.lookUp(urls[i].URL)
		known = append(known, e.state != Unknown && flags&pending == 0 && d.judge(e, &urls[i]) == Nothing)
	}
	return known
}

// UpdateMeta adds what a visit has found. An ETag of more than 256 bytes is not kept.
func (d *DB) UpdateMeta(url string, m Meta) {
	if len(m.ETag) > maxETag {
		m.ETag = ""
	}
	var buf [maxETag + 128]byte
	meta := appendMeta(buf[:0], &m, d.born)
	if len(meta) == 0 {
		return
	}
	now := d.minutes()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.updateMeta(url, meta, now)
}

// updateMeta adds meta that was found at a time, in minutes.
func (d *DB) updateMeta(url string, meta []byte, at uint32) {
	t := d.active
	ref := t.Find(url)
	if ref == 0 {
		ref = t.Add(url)
		t.SetWord(ref, wordFirst, at)
	} else if at < t.Word(ref, wordFirst) {
		t.SetWord(ref, wordFirst, at)
	}
	meta = joinMeta(meta, t.Kept(mem.Ref(t.Word(ref, wordMeta))))
	t.SetWord(ref, wordMeta, uint32(t.Keep(meta)))
}

const maxETag = 256
