package crawl

import (
	"context"
	"fmt"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/policy"
	"kumo/internal/content/robots"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/seen"
)

// An Explanation is what the engine knows of one URL. What became of it is in the crawl's files, too.
type Explanation struct {
	URL   weburl.URL  // as the crawl has it, canonical and by its rules
	Entry *seen.Entry // what the URL database has; nil if it was not met, or the crawl keeps nothing
	State seen.State

	InScope bool   // a link to it that is found on a seed now would bring it in
	Rule    string // the rule that would leave it out; "scope" where it is in
	Why     string // in the rule's words

	IgnoresRobots bool
	Allowed       bool // by its host's robots.txt
	By            robots.Line
	RobotsKnown   bool // the three above hold

	// where it waits, or that it is under way; nil if neither, or behind the first 10,000 of its host
	Found     *frontier.FoundItem
	Host      frontier.HostInfo
	HostMet   bool
	Overrides []policy.Applied // what it has in place of the crawl's settings
	Pages     int64            // that the host has given
	Most      int64            // that it may give, 0: without limit
	LinksCut  int64            // visits of the crawl's pages with unread links

	Abandoned   *item.Item // it was given up with its origin, and waits for another run
	GivenUp     string     // why its origin was given up, "" if it was not
	Pending     *item.Item // the next merge decides whether it is news
	PendingRule string     // the rule by which Pending is left out then, "" if it is not

	Ranking *Ranking // how important it is; nil if the crawl has not met it

	// Where links are claimed:
	Claiming  bool // a link to it waits to be claimed
	Elsewhere bool // its host is another node's
}

// Explain says what became of a URL. It may be called while the crawl runs: then it is what is so at one moment or the
// next. tell is told what is known so far before each look that may wait for the disk: who has no time takes that.
func (i *Inspector) Explain(url string, tell func(Explanation)) (*Explanation, error) {
	u, err := weburl.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", url, err)
	}
	u = i.cfg.Canon.Apply(u.Canonical())
	x := &Explanation{URL: u, IgnoresRobots: i.cfg.IgnoreRobots, Most: i.limits.quota.HostLimit(u.Host()),
		Overrides: i.cfg.Overrides.Explain(u), LinksCut: i.counts.stats.Totals().LinksCut}
	i.explainRules(x, 1)
	slice := i.hosts.slices.OfHost(u.Host(), u.String())
	x.Host, x.HostMet = i.frontier.Host(slice)
	i.explainClaims(x)
	i.explainEnd(x)
	tell(*x)
	if err := i.keeper.ensureRanks(context.Background()); err != nil { // by which the frontier says where the URL is
		return nil, err
	}
	if x.Found, err = i.frontier.Inspector().Find(slice, u.String()); err != nil {
		return nil, fmt.Errorf("look for %s in the frontier: %w", u, err)
	}
	i.explainEnd(x) // after the frontier: what is done meanwhile is met here
	tell(*x)
	if x.Found == nil {
		if x.Abandoned, err = i.abandoned.Find(u.String()); err != nil {
			return nil, err
		}
	}
	if err := i.explainSeen(x); err != nil {
		return nil, err
	}
	if state, depth, err := i.known.seen.StateOf(u.String()); err == nil && state != seen.Unknown {
		i.explainRules(x, depth)
		x.Ranking = i.ranks.explain(u.String(), depth, x.queuedItem())
	}
	tell(*x)
	x.Pages, err = i.limits.hostPages(u.Host())
	return x, err
}

// explainRules judges a link to the URL, at its depth, as if a seed had it.
func (i *Inspector) explainRules(x *Explanation, depth int32) {
	it := item.Item{URL: x.URL.String(), Kind: page.Anchor, Depth: depth}
	v := i.rules.Judge(x.URL, linkTo(&it))
	x.Rule, x.Why, x.InScope = v.Rule, v.Why, v.Rule == ""
	if x.InScope {
		x.Rule, x.Why = "scope", i.rules.InScope(x.URL).Rule
	}
	if v.Rule == "scope" && i.rules.Embeds {
		if x.InScope = x.State == seen.Known; x.InScope {
			x.Why += ", but a page is shown with it (--embeds)"
		} else {
			x.Why += "; if a page is shown with it, it is fetched (--embeds)"
		}
	}
	if rules, known := i.robots.Get(x.URL.Origin()); known && !x.IgnoresRobots {
		x.RobotsKnown = true
		x.Allowed, x.By = rules.Decide(x.URL.RequestURI())
	}
}

// explainEnd says whether the URL is done though its visit is not given back, or given up.
func (i *Inspector) explainEnd(x *Explanation) {
	if x.Found != nil && x.Found.UnderWay && i.ends.has(x.URL.String()) {
		x.Found = nil
	}
	if l, ok := i.origins.Abandoned(x.URL.Origin()); ok {
		x.GivenUp = fmt.Sprintf("%s: %s", l.Failure, l.Why)
	}
}

// explainClaims says whether the URL is among the links that are yet to be claimed, and whether another node is the one
// to fetch it.
func (i *Inspector) explainClaims(x *Explanation) {
	switch url := x.URL.String(); {
	case i.claims != nil:
		x.Claiming, x.Elsewhere = i.links.outbox.Has(url), !i.hosts.ours(i.hosts.slices.OfHost(x.URL.Host(), url))
	case i.cfg.Claims: // nobody runs it
		for _, data := range i.links.leftovers {
			x.Claiming = x.Claiming || entry.NewDecoder([]byte(data)).Candidate().Item.URL == url
		}
	}
}

func (i *Inspector) explainSeen(x *Explanation) (err error) {
	url := x.URL.String()
	if i.known.db == nil {
		x.State, _, err = i.known.seen.StateOf(url)
		return err
	}
	payload, waits, err := i.known.db.Pending(url)
	if err != nil {
		return err
	}
	met, known, err := i.known.db.Get(url)
	if known {
		x.Entry, x.State = &met, met.State
	}
	if !waits || err != nil {
		return err
	}
	d := entry.NewDecoder(payload)
	c := d.Candidate()
	x.Pending, x.PendingRule = &c.Item, c.Rule
	return d.Err()
}
