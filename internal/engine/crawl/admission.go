package crawl

import (
	"strings"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/policy"
	"kumo/internal/engine/visit"
	"kumo/internal/state/entry"
	"kumo/internal/state/rank"
	"kumo/internal/state/seen"
)

// A batch is what one page, or the seeds, bring in: judged, offered to seen, and sorted into what is to be fetched and
// what is left out. Its slices are used again and again.
type batch struct {
	linkBuffers
	links int // that the page has

	records []*page.Record // what a visit, or several at once, have brought
	done    []*entry.Done  // of each record, where that ends a visit

	item        *item.Item // whose visit ends with the batch; nil if that does not matter
	visitURL    string     // the URL whose visit ends with the batch
	recrawlPlan seen.Meta  // when it is visited again, if that is to be noted and the visit brought no record

	visit *visitLinks // whose links the batch has, where links are claimed; nil if it is no visit's
	ended []string    // URLs, beside the one that settles, that will not be visited any more

	foreign       bool // the links come from elsewhere, with their payloads
	returned      bool // and have gone nowhere: the outbox has had them
	routed        bool // nothing of it goes to other nodes
	seedsRecorded bool // its roots are kept already

	refetch []item.Item // URLs that were fetched, and are to be once more: see hops

	ranks rankedLinks // what a ranking that goes by links is told
}

// linkBuffers are the slices of a batch that grow with its links. Thousands of workers may wait for answers, so a worker
// has buffers only while it reads a page.
type linkBuffers struct {
	cands    []entry.Candidate
	urls     []seen.URL
	news     []seen.News
	offs     []string   // hosts of links that are not the crawl's
	payloads []byte     // of candidates that a merge may have to decide
	known    []bool     // of urls, that memory knows them
	edits    []LinkEdit // of links that a hook is asked about

	found    []entry.Candidate // new, to be fetched
	skips    []page.Skip       // new, left out for good
	deferred []page.Skip       // new, set aside
	entries  entry.Encoder
}

// empty reports whether all buffers are empty.
func (r *linkBuffers) empty() bool {
	return len(r.cands)+len(r.urls)+len(r.news)+len(r.offs)+len(r.payloads)+len(r.known)+len(r.edits)+len(r.found)+
		len(r.skips)+len(r.deferred)+len(r.entries.Writer) == 0
}

// maxBatchLinks is how many links a batch may have that keeps its room for the next.
const maxBatchLinks = 4096

func (b *batch) reset() {
	if cap(b.cands) > maxBatchLinks || cap(b.skips) > maxBatchLinks {
		*b = batch{visit: b.visit}
		return
	}
	clear(b.records)
	clear(b.done)
	b.records, b.done = b.records[:0], b.done[:0]
	clear(b.cands)
	clear(b.found)
	clear(b.skips)
	clear(b.deferred)
	b.cands, b.found, b.skips, b.deferred = b.cands[:0], b.found[:0], b.skips[:0], b.deferred[:0]
	clear(b.urls) // they hold on to what they are parts of: a page, or another node's message
	clear(b.offs)
	clear(b.edits)
	b.urls, b.news, b.offs, b.links, b.entries.Writer = b.urls[:0], b.news[:0], b.offs[:0], 0, b.entries.Writer[:0]
	b.known, b.edits = b.known[:0], b.edits[:0]
	clear(b.ended)
	b.ended = b.ended[:0]
	b.item, b.visitURL, b.recrawlPlan, b.payloads = nil, "", seen.Meta{}, b.payloads[:0]
	b.foreign, b.returned, b.routed, b.seedsRecorded = false, false, false, false
	clear(b.refetch)
	b.refetch = b.refetch[:0]
	b.ranks.reset()
}

// retain drops the candidates that keep, which is called with each and its index, does not want.
func (b *batch) retain(keep func(i int, c *entry.Candidate) bool) {
	kept := 0
	for i := range b.cands {
		if keep(i, &b.cands[i]) {
			b.cands[kept], b.urls[kept] = b.cands[i], b.urls[i]
			kept++
		}
	}
	clear(b.cands[kept:])
	b.cands, b.urls = b.cands[:kept], b.urls[:kept]
}

// nextOfPage is reset for more links of the same page.
func (b *batch) nextOfPage() {
	ranks := b.ranks
	b.ranks = rankedLinks{}
	b.reset()
	b.ranks = ranks
	b.ranks.nextPart()
}

// admission judges links and seeds, and sorts those that are new.
type admission struct {
	cfg      *Config
	hooks    Hooks
	rules    *policy.Rules
	known    *known
	names    *names
	traps    *trapGuard
	ranks    *ranking
	deferred bool // deferred URLs are kept in a file
}

// addLinks takes the links of it in.
func (a *admission) addLinks(b *batch, it *item.Item, pg *page.Page) error {
	asks := a.cfg.Ignore.Links(&pg.Robots)
	if a.hooks.Link != nil && len(pg.Links) > 0 {
		return a.addEdited(b, it, pg.Links, asks)
	}
	for i := range pg.Links {
		a.addLink(b, it, &pg.Links[i], asks, nil)
	}
	return nil
}

// addLink takes one link of it in, with what a hook has to say; nil if there is none.
func (a *admission) addLink(b *batch, it *item.Item, l *page.Link, asks policy.LinkRules, edit *LinkEdit) {
	u, err := weburl.Parse(l.URL)
	if err != nil || a.cfg.Sitemaps == policy.SitemapsIgnored && (l.Kind == page.Sitemap || l.Kind == page.Listed) {
		return // the parser has counted what is unusable
	}
	u = a.rewritten(it, l.Kind, u)
	c, veto := child(it, l), ""
	c.URL = u.String() // the link itself stays as the page has it
	if edit != nil {
		c.Lift, veto = liftOf(rank.Lift(c.Lift)+edit.Lift), edit.Veto
	}
	rule, why := "nofollow", asks.NoFollow(l)
	switch {
	case veto != "":
		rule, why = ruleVetoed, veto
	case l.Kind == page.Sitemap && strings.Count(it.Path, "M") >= visit.MaxNested:
		rule, why = "sitemap", "an index in an index in an index"
	}
	if linkTo(&c).MovesSeed() && veto == "" {
		a.rules.Scope.AddSeed(u)
	}
	a.classify(b, u, c, rule, why)
}

// rewritten is a link's URL as the crawl's rules have it. A redirect to what is the same page by the rules ("www." put
// before the host, a session id behind the path) is followed as it stands: the server has no page at the URL that was
// asked for.
func (a *admission) rewritten(it *item.Item, kind page.Kind, u weburl.URL) weburl.URL {
	if a.cfg.Canon == 0 {
		return u
	}
	v := a.cfg.Canon.Apply(u)
	if v == u || kind != page.Redirect {
		return v
	}
	if from, err := weburl.Parse(it.URL); err == nil && a.cfg.Canon.Apply(from) == v {
		return u
	}
	return v
}

// classify judges one link. A rule about the link that its page has is told with why it says so, "" if it does not.
// What is off the crawl's hosts ends here.
func (a *admission) classify(b *batch, u weburl.URL, it item.Item, rule, why string) {
	if !u.IsHTTP() {
		return // mailto:, data: and the like are nobody's to fetch
	}
	v := a.rules.Judge(u, linkTo(&it))
	if v.Rule == "" && why != "" {
		v = policy.Defer(rule, why)
		v.Deferred = a.deferred || rule != ruleVetoed // or else it would never be counted
	}
	if v.OffHost {
		b.offs = append(b.offs, a.names.intern(u.Host()))
		return
	}
	b.cands = append(b.cands, entry.Candidate{Host: u.Host(), Item: it, Verdict: v})
	b.urls = append(b.urls, seen.URL{URL: it.URL, Depth: it.Depth, State: entry.StateFor(v)})
}

// offer asks seen which candidates are news, and sorts those. It is called within the ledger's gate, so that what
// seen has taken is in the journal's same batch.
func (a *admission) offer(b *batch) {
	if a.known.db == nil || b.foreign {
		b.news = a.known.seen.Offer(b.urls, b.news[:0])
	} else {
		b.news = a.known.db.OfferWith(b.urls, b.news[:0], b.payload)
	}
	for i, news := range b.news {
		c := &b.cands[i]
		switch {
		case news == seen.Fresh:
			c.Item.URL = b.urls[i].URL // a copy that may be kept; the link's was part of its page
			a.traps.addLink(&c.Item)
			if a.route(b, c); c.Rule == "" {
				b.ranks.candOf = append(b.ranks.candOf, int32(i))
			}
			continue
		case news == seen.Undecided:
			b.entries.Undecided(b.urls[i].Payload)
			a.known.undecided.Add(1)
		case news == seen.Nearer && c.Rule == "" && a.known.depths:
			b.entries.Nearer(c.Item.URL, c.Item.Depth)
		}
		if c.Rule == "" && a.traps.addLink(&c.Item) {
			a.route(b, c)
		}
	}
}

// route sorts a candidate that is news, by its verdict.
func (a *admission) route(b *batch, c *entry.Candidate) {
	c.Host = a.names.intern(c.Host)
	if c.Rule != "" {
		a.skip(b, c)
		return
	}
	c.Item.Path = a.path(c.Item.Path, c.Item.Kind)
	a.ranks.lift(&c.Item)
	b.entries.Found(&c.Item)
	b.found = append(b.found, *c)
}

// payload is what is to be known of a candidate if a merge finds later that it is news.
func (b *batch) payload(i int) []byte {
	at, enc := len(b.payloads), entry.Encoder{Writer: b.payloads}
	enc.Candidate(&b.cands[i])
	b.payloads = enc.Writer
	return b.payloads[at:]
}

func (a *admission) skip(b *batch, c *entry.Candidate) {
	s := page.Skip{URL: c.Item.URL, Host: c.Host, From: c.Item.From, Depth: int(c.Item.Depth), Time: a.cfg.Now(),
		Rule: c.Rule, Why: c.Why}
	if c.Deferred {
		b.entries.Skip(entry.SkipDeferred, &s)
		b.deferred = append(b.deferred, s)
		return
	}
	b.entries.Skip(entry.SkipNew, &s)
	b.skips = append(b.skips, s)
}

// path is the discovery path one hop further. Paths are few and shared.
func (a *admission) path(parent string, k page.Kind) string {
	hop := k.Hop()
	if hop == 0 {
		return parent
	}
	if len(parent) >= entry.MaxPath {
		return parent // as long as crawl.log has them
	}
	return a.names.intern(parent + string(hop))
}
