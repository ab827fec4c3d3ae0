package seen

import (
	"strings"

	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/run"
)

// offers enters URLs into memory.
type offers struct {
	*records
	// reused buffers of one call; guarded by mu
	may      []bool
	probes   []run.Probe
	searches []mem.Search
}

// Offer adds urls, and appends to news what each was. It replaces the URL of those that are Fresh with a copy that the
// caller may retain. A known URL met at less depth gets that depth. A later merge decides Undecided ones, and delivers
// the best offer with its Payload; offers that are no better than an undecided one are Nothing.
func (o *offers) Offer(urls []URL, news []News) []News {
	return o.OfferWith(urls, news, func(i int) []byte { return urls[i].Payload })
}

// OfferWith is Offer for callers that create a Payload only when it is needed: for Undecided URLs, it sets
// urls[i].Payload to payload(i). payload must not use the database.
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

// probe returns for each URL whether it is not in memory but may be on disk.
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

// offer returns the news of an offer, and the flags to enter it with, at ref if memory has the URL. at is the URL's
// record in the active part from before the call of OfferWith.
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

// InsertKnown adds URLs whose news was delivered before, such as those of a journal after the database's position,
// before the next Freeze. No merge delivers them again, unless there is a better undecided offer.
func (o *offers) InsertKnown(urls []URL) {
	now := o.minutes()
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, may := range o.probe(urls) {
		o.insertKnown(&urls[i], may, now)
	}
	clear(o.searches)
}

// Import is InsertKnown and UpdateMeta for entries of another database. It keeps their First if that is earlier.
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

// Remembers appends to known, for each URL, whether memory certainly has it, so that an offer of it would be Nothing.
func (o *offers) Remembers(urls []URL, known []bool) []bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range urls {
		_, e, flags := o.lookUp(urls[i].URL)
		known = append(known, e.state != Unknown && flags&pending == 0 && o.judge(e, &urls[i]) == Nothing)
	}
	return known
}

// UpdateMeta adds the result of a visit. An ETag of more than 256 bytes is not stored.
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
