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

// An Explanation is the engine's information about one URL. The crawl's files have the results of its visits.
type Explanation struct {
	URL   weburl.URL  // canonical, and rewritten by the crawl's rules
	Entry *seen.Entry // of the URL database; nil if the URL is unknown, or there is no database
	State seen.State

	InScope bool   // whether a link to it on a seed would be followed now
	Rule    string // the rule that filters it; "scope" if it is in scope
	Why     string // the rule's reason

	IgnoresRobots bool
	Allowed       bool // by its host's robots.txt
	By            robots.Line
	RobotsKnown   bool // whether the fields from IgnoresRobots to By are set

	// its place in a queue, or that it is under way; nil if it is neither, or behind the first 10,000 URLs of its host
	Found     *frontier.FoundItem
	Host      frontier.HostInfo
	HostMet   bool
	Overrides []policy.Applied // its settings that replace the crawl's
	Pages     int64            // pages of the host so far
	Most      int64            // limit of the host's pages; 0: unlimited
	LinksCut  int64            // visits of the whole crawl that have not read all links of a page
	// visits of the whole crawl of pages that show nothing without script
	NeedsScript int64

	Render         policy.RenderMode // which pages of the host are rendered; "" if none
	RenderingEnded []string          // pages of the host that are no longer rendered, as that gained nothing

	Abandoned   *item.Item // abandoned with its origin, to be retried by the next run
	GivenUp     string     // why its origin was abandoned; "" if it was not
	Pending     *item.Item // the next merge decides whether it is new
	PendingRule string     // the rule that filters Pending if it is new; "" if none

	Ranking *Ranking // its importance; nil if the URL is unknown

	// Where links are claimed:
	Claiming  bool // a link to it is not claimed yet
	Elsewhere bool // another node owns its host
}

// Explain explains a URL. It may run beside the crawl: each part is then from some moment during the call. Before each
// step that may wait for the disk, it calls tell with the result so far, for callers with a deadline.
func (i *Inspector) Explain(url string, tell func(Explanation)) (*Explanation, error) {
	u, err := weburl.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", url, err)
	}
	u = i.cfg.Canon.Apply(u.Canonical())
	x := &Explanation{URL: u, IgnoresRobots: i.cfg.IgnoreRobots, Most: i.limits.quota.HostLimit(u.Host()),
		Overrides: i.cfg.Overrides.Explain(u)}
	totals := i.counts.stats.Totals()
	x.LinksCut, x.NeedsScript = totals.LinksCut, totals.NeedsScript
	x.Render = i.cfg.Render
	if own := i.cfg.Overrides.ForHost(u.Host()).Render; own != nil {
		x.Render = *own
	}
	if i.renderings != nil && x.Render == policy.RenderAuto {
		x.RenderingEnded = i.renderings.gainOf(u.Host()).ended()
	}
	i.explainRules(x, 1)
	slice := i.hosts.slices.OfHost(u.Host(), u.String())
	x.Host, x.HostMet = i.frontier.Host(slice)
	i.explainClaims(x)
	i.explainEnd(x)
	tell(*x)
	if err := i.keeper.ensureRanks(context.Background()); err != nil { // the frontier orders its queues by these
		return nil, err
	}
	if x.Found, err = i.frontier.Inspector().Find(slice, u.String()); err != nil {
		return nil, fmt.Errorf("find %s in the frontier: %w", u, err)
	}
	i.explainEnd(x) // after the frontier, as the visit may have ended in between
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

// explainRules judges a link to the URL on a seed, at the given depth.
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

// explainEnd handles a visit that has ended but is not given back, and an abandoned origin.
func (i *Inspector) explainEnd(x *Explanation) {
	if x.Found != nil && x.Found.UnderWay && i.ends.has(x.URL.String()) {
		x.Found = nil
	}
	if l, ok := i.origins.Abandoned(x.URL.Origin()); ok {
		x.GivenUp = fmt.Sprintf("%s: %s", l.Failure, l.Why)
	}
}

// explainClaims finds out whether a link to the URL is not claimed yet, and whether another node owns its host.
func (i *Inspector) explainClaims(x *Explanation) {
	switch url := x.URL.String(); {
	case i.claims != nil:
		x.Claiming, x.Elsewhere = i.links.outbox.Has(url), !i.hosts.ours(i.hosts.slices.OfHost(x.URL.Host(), url))
	case i.cfg.Claims: // the crawl does not run
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
