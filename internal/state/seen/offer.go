package seen

import (
	"strings"

	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/run"
)

// Offers enter URLs into memory.
type offers struct {
	*records
	// of one call; guarded by mu
	may      []bool
	probes   []run.Probe
	searches []mem.Search
}

// Offer enters urls and appends to news what each was. It replaces the URL of those that are Fresh with a copy that the
// caller may keep. A known URL met again at less depth takes that depth. A later merge decides on those that are Later,
// and reports the best offer, with its Payload; offers that are no better than a pending one are Nothing.
func (o *offers) Offer(urls []URL, news []News) []News {
	return o.OfferWith(urls, news, func(i int) []byte { return urls[i].Payload })
}

// OfferWith is Offer for who makes Payloads only where they are needed: where news is Later, urls[i].Payload becomes
// payload(i). The database must not be used in it.
func (o *offers) OfferWith(urls []URL, news []News, payload func(i int) []byte) []News {
	now := o.minutes()
	o.mu.Lock()
	defer o.mu.Unlock()
	may := o.probe(urls)
	for i := range urls {
		u := &urls[i]
		ref, n, flags := o.offer(u, o.searches[i].Ref, may[i])
		if n == Undecided {
			u.Payload = payload(i)
		}
		if n != Nothing {
			o.enter(ref, u, flags, now)
		}
		if n == Fresh {
			u.URL = strings.Clone(u.URL)
		}
		news = append(news, n)
	}
	clear(o.searches)
	return news
}

// probe reports of all URLs at once whether the disk may have them and memory has not.
func (o *offers) probe(urls []URL) []bool {
	o.may, o.probes, o.searches = o.may[:0], o.probes[:0], o.searches[:0]
	for i := range urls {
		o.searches = append(o.searches, mem.Search{Key: urls[i].URL})
	}
	o.active.FindAll(o.searches)
	for i := range urls {
		old, _ := o.lookUpAt(urls[i].URL, o.searches[i].Ref)
		o.may = append(o.may, old.state == Unknown)
		if old.state == Unknown {
			o.probes = append(o.probes, run.Probe{Key: urls[i].URL, Hash: run.HashString(urls[i].URL)})
		}
	}
	o.tiers.View().Probe(o.probes)
	asked := o.probes
	for i := range o.may {
		if o.may[i] {
			o.may[i], asked = asked[0].May, asked[1:]
		}
	}
	clear(o.probes)
	return o.may
}

// offer says what an offer brings, and what is to be entered for that: flags, at ref if memory has the URL. It is given
// where the active part had the URL before any of the same call was entered.
func (o *offers) offer(u *URL, at mem.Ref, may bool) (ref mem.Ref, news News, flags uint8) {
	if ref = at; ref == 0 {
		ref = o.active.Find(u.URL)
	}
	old, flags := o.lookUpAt(u.URL, ref)
	news = o.judge(old, u)
	switch {
	case news == Nothing || old.state != Unknown:
	case may:
		flags = pending
	default:
		flags = counted
	}
	if news != Nothing && flags&pending != 0 {
		news = Undecided
	}
	return ref, news, flags
}

// InsertKnown enters URLs whose news was told before: what a journal says of the time after the database's position,
// before the next Freeze. No merge tells them again, unless a better offer waits.
func (o *offers) InsertKnown(urls []URL) {
	now := o.minutes()
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, may := range o.probe(urls) {
		o.insertKnown(&urls[i], may, now)
	}
	clear(o.searches)
}

// Import is InsertKnown and UpdateMeta of what another database knew, with its First where that is earlier.
func (o *offers) Import(entries []Entry) {
	urls := make([]URL, len(entries))
	for i := range entries {
		urls[i] = URL{URL: entries[i].URL, Depth: entries[i].Depth, State: entries[i].State}
	}
	now := o.minutes()
	var meta []byte
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, may := range o.probe(urls) {
		first := now
		if !entries[i].First.IsZero() {
			first = o.minute(entries[i].First)
		}
		if urls[i].State != Unknown {
			o.insertKnown(&urls[i], may, first)
		}
		if meta = appendMeta(meta[:0], &entries[i].Meta, o.created); len(meta) > 0 {
			o.updateMeta(urls[i].URL, meta, first)
		}
	}
	clear(o.searches)
}

// Remembers appends to known of each URL whether memory knows it for certain, so that an offer of it would be Nothing.
func (o *offers) Remembers(urls []URL, known []bool) []bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range urls {
		_, e, flags := o.lookUp(urls[i].URL)
		known = append(known, e.state != Unknown && flags&pending == 0 && o.judge(e, &urls[i]) == Nothing)
	}
	return known
}

// UpdateMeta adds what a visit has found. An ETag of more than 256 bytes is not kept.
func (o *offers) UpdateMeta(url string, m Meta) {
	var buf [maxETag + 128]byte
	meta := appendMeta(buf[:0], &m, o.created)
	if len(meta) == 0 {
		return
	}
	now := o.minutes()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.updateMeta(url, meta, now)
}
