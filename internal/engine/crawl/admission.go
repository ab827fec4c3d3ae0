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

// A batch holds the links of one page, or some seeds, on their way into the crawl: judged, offered to seen, and divided
// into URLs to fetch and filtered ones. Its slices are reused.
type batch struct {
	linkBuffers
	links int // links on the page

	records []*page.Record // brought by one visit, or by several
	done    []*entry.Done  // for each record that ends a visit

	item        *item.Item // the item whose visit ends with the batch; nil if it is not needed
	visitURL    string     // the URL whose visit ends with the batch
	recrawlPlan seen.Meta  // its next visit, if the visit brought no record
	planned     *planned   // its next visit, where other nodes remember it; nil if there is none

	visit *visitLinks // the visit that found the links, where links are claimed; may be nil
	ended []string    // other URLs that will not be visited any more

	foreign       bool // the links come from another node, with their payloads
	returned      bool // they were in this node's outbox and never sent
	routed        bool // no link goes to another node
	seedsRecorded bool // its scope seeds are recorded already

	refetch []item.Item // URLs to fetch again although they were fetched: see hops

	ranks rankedLinks // input and output of a ranking by links
}

// linkBuffers are the slices of a batch that grow with its links. A worker has buffers only while it reads a page, as
// thousands of workers may wait for answers.
type linkBuffers struct {
	cands    []entry.Candidate
	urls     []seen.URL
	news     []seen.News
	offs     []string   // hosts of out-of-scope links
	payloads []byte     // of candidates that a merge may decide
	known    []bool     // for each of urls: memory has it
	edits    []LinkEdit // for a link hook

	found    []entry.Candidate // new, to fetch
	skips    []page.Skip       // new, filtered
	deferred []page.Skip       // new, deferred
	entries  entry.Encoder
}

// empty reports whether all buffers are empty.
func (r *linkBuffers) empty() bool {
	return len(r.cands)+len(r.urls)+len(r.news)+len(r.offs)+len(r.payloads)+len(r.known)+len(r.edits)+len(r.found)+
		len(r.skips)+len(r.deferred)+len(r.entries.Writer) == 0
}

// maxBatchLinks is the capacity up to which a batch keeps its slices for reuse, and the size of the parts in which long
// lists are processed.
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
	clear(b.urls) // they reference the page, or another node's message
	clear(b.offs)
	clear(b.edits)
	b.urls, b.news, b.offs, b.links, b.entries.Writer = b.urls[:0], b.news[:0], b.offs[:0], 0, b.entries.Writer[:0]
	b.known, b.edits = b.known[:0], b.edits[:0]
	clear(b.ended)
	b.ended = b.ended[:0]
	b.item, b.visitURL, b.recrawlPlan, b.payloads = nil, "", seen.Meta{}, b.payloads[:0]
	b.planned = nil
	b.foreign, b.returned, b.routed, b.seedsRecorded = false, false, false, false
	clear(b.refetch)
	b.refetch = b.refetch[:0]
	b.ranks.reset()
}

// retain drops the candidates for which keep returns false. keep is called with each candidate and its index.
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

// nextOfPage resets the batch for more links of the same page.
func (b *batch) nextOfPage() {
	ranks := b.ranks
	b.ranks = rankedLinks{}
	b.reset()
	b.ranks = ranks
	b.ranks.nextPart()
}

// admission judges links and seeds, and routes new ones.
type admission struct {
	cfg      *Config
	hooks    Hooks
	rules    *policy.Rules
	known    *known
	names    *names
	traps    *trapGuard
	ranks    *ranking
	loaded   *loaded // by rendered pages; nil: not known
	deferred bool    // deferred URLs are written to a file
}

// addLinks adds the links of a page, which was fetched as it, to the batch.
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

// addLink adds one link of it to the batch. edit is the result of a link hook, nil without one.
func (a *admission) addLink(b *batch, it *item.Item, l *page.Link, asks policy.LinkRules, edit *LinkEdit) {
	u, err := weburl.Parse(l.URL)
	if err != nil || a.cfg.Sitemaps == policy.SitemapsIgnored && (l.Kind == page.Sitemap || l.Kind == page.Listed) {
		return // the parser has counted unusable links
	}
	u = a.rewritten(it, l.Kind, u)
	c, veto := child(it, l), ""
	c.URL = u.String() // l keeps the URL that the page has
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
	if l.Kind.Embed() && veto == "" {
		if references, has := a.loaded.has(c.URL); has {
			c.Path = a.path(c.Path, c.Kind)
			for i := range references {
				a.addLink(b, &c, &references[i], policy.LinkRules{}, nil)
			}
			return
		}
	}
	if linkTo(&c).MovesSeed() && veto == "" {
		a.rules.Scope.AddSeed(u)
	}
	a.classify(b, u, c, rule, why)
}

// rewritten returns a link's URL after the crawl's rewriting rules. A redirect to a URL that is the same page by these
// rules ("www." added, a session id appended) is followed as it is: the server has no page at the URL that was
// requested.
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

// classify judges one link. rule and why are a reason on the page's side to filter it; why is "" if there is none.
// Links to out-of-scope hosts are only counted.
func (a *admission) classify(b *batch, u weburl.URL, it item.Item, rule, why string) {
	if !u.IsHTTP() {
		return // mailto:, data: and the like
	}
	v := a.rules.Judge(u, linkTo(&it))
	if v.Rule == "" && why != "" {
		v = policy.Defer(rule, why)
		v.Deferred = a.deferred || rule != ruleVetoed // otherwise it would never be counted
	}
	if v.OffHost {
		b.offs = append(b.offs, a.names.intern(u.Host()))
		return
	}
	b.cands = append(b.cands, entry.Candidate{Host: u.Host(), Item: it, Verdict: v})
	b.urls = append(b.urls, seen.URL{URL: it.URL, Depth: it.Depth, State: entry.StateFor(v)})
}

// offer offers the candidates to seen, and routes new ones. It is called within the ledger's gate, so that seen and the
// journal's batch match.
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
			c.Item.URL = b.urls[i].URL // a copy that can be retained; the link's was part of its page
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

// route queues a new candidate or records it as filtered, by its verdict.
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

// payload encodes a candidate for the case that a later merge finds it to be new.
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

// path returns the discovery path extended by one hop. There are few different paths, and they are shared.
func (a *admission) path(parent string, k page.Kind) string {
	hop := k.Hop()
	if hop == 0 {
		return parent
	}
	if len(parent) >= entry.MaxPath {
		return parent // the limit of crawl.log
	}
	return a.names.intern(parent + string(hop))
}
