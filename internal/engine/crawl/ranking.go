package crawl

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"

	"kumo/internal/base/item"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/depth"
	"kumo/internal/state/rank/ids"
	"kumo/internal/state/rank/ranker"
)

// Ranks decide which pending URLs are fetched first.
type Ranks struct {
	Name       string                   // of the order, for display
	Order      rank.Order               // an order that does not use links; nil: by depth
	ID         func(url string) rank.ID // a URL's ID for Order; nil: Order needs none
	Links      *ranker.Ranker           // an order by links, instead of Order
	Persistent bool                     // its links are stored in RankDir; the engine closes it at the end
}

// ranking ranks URLs: by the order, and by the lift that users and sites give them.
type ranking struct {
	Ranks
	prefer   atomic.Pointer[rank.Preferences]
	listener Listener
	full     atomic.Bool // no more URLs can be ranked, and this was reported
}

func newRanking(r Ranks, p rank.Preferences, l Listener) *ranking {
	if r.Order == nil {
		r.Order = depth.New()
	}
	k := &ranking{Ranks: r, listener: l}
	k.prefer.Store(&p)
	return k
}

// lift adds the user's preferences to an item's lift.
func (r *ranking) lift(it *item.Item) {
	if p := *r.prefer.Load(); len(p) > 0 {
		it.Lift = liftOf(rank.Lift(it.Lift) + p.Lift(it.URL))
	}
}

// liftOf converts a lift to the form of items.
func liftOf(l rank.Lift) int8 { return int8(max(-math.MaxInt8, min(math.MaxInt8, l))) }

// rankOf returns an item's rank, for its place in the order.
func rankOf(p rank.Place, it *item.Item) int32 { return int32(p.With(rank.Lift(it.Lift))) }

// place returns a URL's place in an order that does not use links.
func (r *ranking) place(url string, depth int32) rank.Place {
	return rank.PlaceOf(r.Order.Importance(r.idOf(url), depth))
}

// idOf returns a URL's ID for an order that does not use links.
func (r *ranking) idOf(url string) rank.ID {
	if r.ID == nil {
		return 0
	}
	return r.ID(url)
}

// rank sets the ranks of items to which no link was just added.
func (r *ranking) rank(items ...*item.Item) {
	if r.Links == nil {
		for _, it := range items {
			it.Rank = rankOf(r.place(it.URL, it.Depth), it)
		}
		return
	}
	urls := make([]ranker.URL, len(items))
	for i, it := range items {
		urls[i] = ranker.URL{Key: r.Links.KeyOf(it.URL), Depth: it.Depth}
	}
	places, err := r.Links.Places(urls, make([]rank.Place, 0, len(urls)))
	r.reportFull(err)
	for i, it := range items {
		it.Rank = rankOf(places[i], it)
	}
}

// rankAll is rank for a slice of items.
func (r *ranking) rankAll(items []item.Item) {
	const some = 4096 // per call of rank
	var part []*item.Item
	for i := range items {
		if part = append(part, &items[i]); len(part) == some || i == len(items)-1 {
			r.rank(part...)
			part = part[:0]
		}
	}
}

// reportFull reports once that no more URLs can be ranked.
func (r *ranking) reportFull(err error) {
	if err != nil && r.full.CompareAndSwap(false, true) {
		r.listener.Unranked(err)
	}
}

// importance returns the importance of a URL by links; 0 if it is unknown, or the order does not use links.
func (r *ranking) importance(url string, depth int32) float64 {
	if r.Links == nil {
		return 0
	}
	e, _ := r.Links.Explain(ranker.URL{Key: r.Links.KeyOf(url), Depth: depth})
	return e.Importance
}

// rankedLinks are a batch's input to a ranking by links, and the results. The slices are reused.
type rankedLinks struct {
	page     ids.Key
	ofPage   bool    // page is set: the links are on it
	last     bool    // the batch has the last of them
	total    int     // links on the page, of any kind
	distinct int     // different URLs that the page links to, including other nodes'; 0: all are this node's
	share    float32 // worth of one link
	cands    []rankedLink
	candOf   []int32 // index in cands of each found candidate

	earlier []ranker.URL // links on the page in earlier batches
	slices  []string     // slices of their hosts
	others  []ranker.URL // links on the page to other nodes' hosts
	shares  []float32    // worth of these links

	urls      []ranker.URL
	gifts     []ranker.Contribution
	standings []ranker.Placement
	promoted  []promotion
	moves     []frontier.Move
}

// A rankedLink is the ranking's view of a candidate.
type rankedLink struct {
	key     ids.Key
	inScope bool // no rule filters it
	first   bool // the first link of the page to this URL
}

// A promotion moves a pending URL forward in its host's queue.
type promotion struct {
	slice string
	frontier.Move
}

// nextPart resets the struct for more links of the same page.
func (l *rankedLinks) nextPart() {
	was := *l
	l.earlier, l.slices, l.others, l.shares = nil, nil, nil, nil
	l.reset()
	l.page, l.ofPage, l.total = was.page, was.ofPage, was.total
	l.earlier, l.slices, l.others, l.shares = was.earlier, was.slices, was.others, was.shares
}

func (l *rankedLinks) reset() {
	*l = rankedLinks{
		cands:     l.cands[:0],
		candOf:    l.candOf[:0],
		earlier:   l.earlier[:0],
		slices:    clean(l.slices),
		others:    l.others[:0],
		shares:    l.shares[:0],
		urls:      l.urls[:0],
		gifts:     l.gifts[:0],
		standings: l.standings[:0],
		promoted:  clean(l.promoted),
		moves:     l.moves[:0],
	}
}

func clean[T any](s []T) []T {
	clear(s)
	return s[:0]
}

// beginPage begins a page with the given number of links.
func (r *ranking) beginPage(b *batch, url string, links int) {
	if r.Links != nil {
		b.ranks.page, b.ranks.ofPage, b.ranks.total = r.Links.KeyOf(url), true, links
	}
}

// weighLinks numbers a batch's candidates, and computes the worth of the page's link to each.
func (r *ranking) weighLinks(b *batch, several bool) {
	if r.Links == nil {
		return
	}
	l := &b.ranks
	l.cands = l.cands[:0]
	for i := range b.cands {
		k := rankedLink{inScope: b.cands[i].Rule == ""}
		if k.inScope {
			k.key = r.Links.KeyOf(b.cands[i].Item.URL)
		}
		l.cands = append(l.cands, k)
	}
	if !l.ofPage || !several {
		return
	}
	order := make([]int32, 0, len(l.cands))
	for i := range l.cands {
		if l.cands[i].inScope {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(l.cands[a].key, l.cands[b].key) })
	order = slices.CompactFunc(order, func(a, b int32) bool { return l.cands[a].key == l.cands[b].key })
	if l.distinct = len(order); !l.last || len(l.earlier) > 0 {
		l.distinct = l.total // the page has several batches: the number of different URLs is unknown
	}
	var err error
	l.share, err = r.Links.Share(l.page, l.distinct)
	r.reportFull(err)
	for _, i := range order {
		l.cands[i].first = true
	}
}

// sendWorth sets the worth of the links to a candidate's URL, for the node that owns its host.
func (r *ranking) sendWorth(b *batch, i int) {
	if r.Links == nil || b.foreign {
		return
	}
	l, c := &b.ranks, &b.cands[i]
	if !l.cands[i].first {
		return
	}
	u := ranker.RemoteURL{URL: ranker.URL{Key: l.cands[i].key, Depth: c.Item.Depth}, Address: c.Item.URL}
	l.others, l.shares = append(l.others, u.URL), append(l.shares, l.share)
	var err error
	if c.Worth, err = r.Links.ReportDelta(&u, l.share); c.Worth != 0 {
		c.Tag = tagOf(l.page)
	}
	r.reportFull(err)
}

// tagOf returns the tag of the worth of a page's links. It depends only on the page, so it is the same if the process
// crashes before the page is journalled and the page is fetched again.
func tagOf(page ids.Key) uint32 { return max(1, uint32(page)^uint32(page>>32)<<24) }

// apply adds the links of a batch to the ranking, ranks new URLs, and returns the promotions of pending URLs.
func (r *ranking) apply(b *batch, sliceOf func(*entry.Candidate) string) []promotion {
	if r.Links == nil {
		for i := range b.found {
			it := &b.found[i].Item
			it.Rank = rankOf(r.place(it.URL, it.Depth), it)
		}
		return nil
	}
	l := &b.ranks
	switch {
	case l.ofPage && l.last:
		r.addPage(b)
	case l.ofPage:
		r.retainEarlier(b, sliceOf)
		fallthrough
	default:
		if b.foreign {
			r.addForeign(b)
			break
		}
		news := make([]*item.Item, len(b.found))
		for i := range b.found {
			news[i] = &b.found[i].Item
		}
		if len(news) > 0 {
			r.rank(news...)
		}
		return nil
	}
	return r.applyRanks(b, sliceOf)
}

// addPage adds a page with its links.
func (r *ranking) addPage(b *batch) {
	l := &b.ranks
	l.urls = append(l.urls[:0], l.earlier...)
	for i := range l.cands {
		if l.cands[i].inScope {
			l.urls = append(l.urls, ranker.URL{Key: l.cands[i].key, Depth: b.cands[i].Item.Depth})
		}
	}
	var err error
	l.standings, err = r.Links.Fetched(&ranker.Visit{Page: l.page, Links: l.urls, Others: l.others, Shares: l.shares,
		Out: l.distinct}, l.standings[:0])
	r.reportFull(err)
}

// retainEarlier retains links of a page that continues in the next batch.
func (r *ranking) retainEarlier(b *batch, sliceOf func(*entry.Candidate) string) {
	l := &b.ranks
	for i := range l.cands {
		if c := &b.cands[i]; l.cands[i].inScope {
			l.earlier = append(l.earlier, ranker.URL{Key: l.cands[i].key, Depth: c.Item.Depth})
			l.slices = append(l.slices, sliceOf(c))
		}
	}
}

// addForeign adds links that other nodes have found.
func (r *ranking) addForeign(b *batch) {
	l := &b.ranks
	l.gifts = l.gifts[:0]
	for i := range l.cands {
		if c := &b.cands[i]; l.cands[i].inScope {
			u := ranker.URL{Key: l.cands[i].key, Depth: c.Item.Depth}
			l.gifts = append(l.gifts, ranker.Contribution{URL: u, Worth: c.Worth, Tag: c.Tag})
		}
	}
	var err error
	take := r.Links.AddExternal
	if b.returned {
		take = r.Links.Reclaim
	}
	l.standings, err = take(l.gifts, l.standings[:0])
	r.reportFull(err)
}

// applyRanks sets the ranks of new URLs, and returns the promotions of others, sorted by slice.
func (r *ranking) applyRanks(b *batch, sliceOf func(*entry.Candidate) string) []promotion {
	l := &b.ranks
	l.promoted = l.promoted[:0]
	at := 0
	for i := range l.earlier {
		if s := l.standings[at]; s.Rose && !b.foreign {
			l.promoted = append(l.promoted, promotion{l.slices[i], frontier.Move{Key: l.earlier[i].Key, Place: s.Place}})
		}
		at++
	}
	news := 0
	for i := range l.cands {
		if !l.cands[i].inScope {
			continue
		}
		s := l.standings[at]
		at++
		if news < len(l.candOf) && int(l.candOf[news]) == i {
			it := &b.found[news].Item
			it.Rank = rankOf(s.Place, it)
			news++
		} else if s.Rose {
			l.promoted = append(l.promoted, promotion{sliceOf(&b.cands[i]), frontier.Move{Key: l.cands[i].key, Place: s.Place}})
		}
	}
	slices.SortStableFunc(l.promoted, func(a, b promotion) int { return cmp.Compare(a.slice, b.slice) })
	return l.promoted
}

// worth returns a function that returns the worth of links to a URL, for the node that the URL is handed over to; nil
// if the order does not use links.
func (r *ranking) worth() func(url string) float32 {
	if r.Links == nil {
		return nil
	}
	return func(url string) float32 { return r.Links.Export(ranker.URL{Key: r.Links.KeyOf(url)}) }
}
