package batch

import (
	"context"
	"errors"
	"sync"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/parse"
	"kumo/internal/content/policy"
)

// parse extracts the links of a round's Documents.
func (s *setup) parse() *Job {
	p := &linkParser{setup: s}
	p.pool.New = func() any { return &parseState{parser: parse.New(parse.Config{Agent: s.Fetching.Agent})} }
	return &Job{Name: JobParse, Map: p.parse, Route: s.route}
}

// maxDecoded limits the size of a page's body after content decoding.
const maxDecoded = 64 << 20

type linkParser struct {
	*setup
	pool sync.Pool // of *parsing
}

// A parseState is the reusable state for parsing pages.
type parseState struct {
	parser *parse.Parser
	resp   page.Response
	page   page.Page
}

func (p *linkParser) parse(ctx context.Context, t *Task, r Record, emit Emit) error {
	d, err := ReadDocument(r.Key, r.Value)
	if err != nil {
		return err
	}
	m, err := p.member(d.Collection)
	if err != nil {
		return err
	}
	o := OutLinks{Collection: d.Collection, URL: d.URL, Time: d.Time, Depth: d.Depth, Redirects: d.Redirects, Seed: d.Seed}
	switch {
	case d.RedirectTo != "":
		o.Type = RedirectLink
		p.addLink(t, m, &o, &page.Link{URL: d.RedirectTo, Kind: page.Redirect})
	case d.IsPage():
		work := p.pool.Get().(*parseState)
		p.links(ctx, t, m, &d, &o, work)
		p.pool.Put(work)
	}
	m.count(t, "links", int64(len(o.Links)))
	return emit(r.Key, o.Append(nil))
}

// links extracts the links of a page. Parts that cannot be read have none.
func (p *linkParser) links(ctx context.Context, t *Task, m *member, d *Document, o *OutLinks, work *parseState) {
	if d.Response(&work.resp) != nil {
		m.count(t, "unreadable", 1)
		return
	}
	if !p.decodes(parse.MediaType(work.resp.Header.Get("Content-Type"))) {
		return
	}
	if err := fetch.Decode(&work.resp, maxDecoded); err != nil && !errors.Is(err, fetch.ErrTooLong) {
		m.count(t, "undecodable", 1) // parse what could be decoded
	}
	resp := &work.resp
	if shown := p.shown(ctx, resp); shown != nil {
		resp = shown
	}
	if err := work.parser.Parse(resp, &work.page); err != nil {
		m.count(t, "unreadable", 1)
	}
	rules := policy.Directives(0).Links(&work.page.Robots)
	seen := make(map[string]bool, len(work.page.Links))
	for i := range work.page.Links {
		l := &work.page.Links[i]
		if seen[l.URL] {
			continue
		}
		if rules.NoFollow(l) != "" {
			m.count(t, NotFollowed, 1)
			continue // the page may have the same link without it
		}
		seen[l.URL] = p.addLink(t, m, o, l)
	}
}

// addLink adds a link if the rules permit it, and reports whether they do.
func (p *linkParser) addLink(t *Task, m *member, o *OutLinks, l *page.Link) bool {
	u, err := weburl.Parse(l.URL)
	if err != nil {
		return false
	}
	to := o.To(l.URL)
	link := to.link()
	link.Kind = l.Kind
	v := m.rules.Judge(u, link)
	if v.Refused() {
		m.count(t, refusedPrefix+v.Rule, 1)
		return false
	}
	o.Links = append(o.Links, l.URL)
	return true
}
