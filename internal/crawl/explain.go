package crawl

import (
	"fmt"

	"kumo/internal/frontier"
	"kumo/internal/page"
	"kumo/internal/seen"
	"kumo/internal/weburl"
)

// An Explanation is what a crawl knows of one URL.
type Explanation struct {
	URL   string      // as the crawl has it, canonical and by its rules
	Known bool        // it was met within reach
	Entry *seen.Entry // what the URL database has; nil if it was not met, or the crawl keeps nothing

	Aside *page.Skip // why it is set aside, if it is: a better link may still bring it in

	Rule string // the rule that would leave it out if a link to it were found on a seed now, "" if none
	Why  string // in the rule's words

	Host    frontier.HostInfo
	HostMet bool
	Waiting *frontier.Item // if it waits
	Place   int            // in its host's queue, from 1; 0 if it is not among the first
	Shelved bool           // it was given up with its origin, and waits for another run
}

// queueLooked is how far a host's queue is looked through.
const queueLooked = 10_000

// Explain says what became of a URL. The crawl must not be running.
func (e *Engine) Explain(url string) (*Explanation, error) {
	u, err := weburl.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", url, err)
	}
	u = e.cfg.Canon.Apply(u.Canonical())
	x := &Explanation{URL: u.String()}
	if err := e.look(x); err != nil {
		return nil, err
	}
	v := e.judge(u, &frontier.Item{URL: x.URL, Kind: page.Anchor, Depth: 1})
	x.Rule, x.Why = v.rule, v.why
	x.Host, x.HostMet = e.frontier.Host(u.Host())
	items, err := e.frontier.Queue(u.Host(), queueLooked)
	for i := range items {
		if items[i].URL == x.URL {
			x.Waiting, x.Place = &items[i], i+1
			break
		}
	}
	return x, err
}

func (e *Engine) look(x *Explanation) error {
	if e.db == nil {
		state, _, err := e.seen.Look(x.URL)
		x.Known = state != seen.Unknown
		return err
	}
	entry, known, err := e.db.Get(x.URL)
	if known {
		x.Known, x.Entry = entry.State != seen.Unknown, &entry
	}
	if err != nil || entry.State != seen.Aside || e.asides == nil {
		return err
	}
	return e.asides.read(e.asked, func(s page.Skip, _ int64) error {
		if s.URL == x.URL {
			x.Aside = &s
		}
		return nil
	})
}
