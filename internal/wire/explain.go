package wire

import (
	"context"
	"encoding/base32"
	"iter"

	"kumo/internal/crawl"
	"kumo/internal/frontier"
	"kumo/internal/inspect"
	"kumo/internal/seen"
)

var _ inspect.Source = source{}

// A source answers for a crawl that is open in this process. What the crawl's files say, the one who asks reads, see [Look]: a crawl
// that runs has other things to do.
type source struct{ *Crawl }

// Explain is Source's.
func (c source) Explain(_ context.Context, url string) (*inspect.Explanation, error) {
	e, err := c.engine.Explain(url)
	if err != nil {
		return nil, err
	}
	x := &inspect.Explanation{URL: e.URL.String(), Scope: inspect.Scope{In: e.In, Rule: e.Rule, Why: e.Why}, GivenUp: e.GivenUp}
	if e.Entry != nil && e.State != seen.Unknown {
		k := knownOf(e.Entry)
		x.Known = &k
	}
	if e.Entry != nil && !e.Entry.Fetched.IsZero() {
		x.Page = pageOf(e.Entry)
	}
	if e.HostMet {
		h := hostOf(&e.Host)
		h.Pages, h.Most = e.Pages, e.Most
		x.Host = &h
	}
	explainRobots(x, e)
	explainWait(x, e)
	return x, nil
}

func explainRobots(x *inspect.Explanation, e *crawl.Explanation) {
	switch {
	case e.IgnoresRobots:
		x.Robots = &inspect.Robots{Ignored: true, Allowed: true}
	case e.RobotsKnown:
		x.Robots = &inspect.Robots{Allowed: e.Allowed, Line: e.By.Number, Text: e.By.Text}
	}
}

// explainWait says where the URL waits, if it does.
func explainWait(x *inspect.Explanation, e *crawl.Explanation) {
	switch {
	case e.Found != nil:
		it := itemOf(&e.Found.Item)
		x.Waits, x.Place, x.Active = &it, e.Found.Place, e.Found.UnderWay
	case e.Shelved != nil:
		it := itemOf(e.Shelved)
		x.Waits = &it
	}
	if p := e.Pending; p != nil {
		x.Merge = &inspect.Skip{Rule: e.Left, From: p.From, Depth: int(p.Depth)}
	}
}

// pageOf is what the URL database has of a page.
func pageOf(e *seen.Entry) *inspect.Page {
	p := &inspect.Page{Time: e.Fetched, Status: e.Status, Depth: int(e.Depth)}
	if e.Digest != [20]byte{} {
		p.Digest = "sha1:" + base32.StdEncoding.EncodeToString(e.Digest[:])
	}
	return p
}

// Hosts is Source's.
func (c source) Hosts(_ context.Context, n int) iter.Seq2[inspect.Host, error] {
	return convert(c.Frontier.Hosts(n, frontier.ByWaiting), hostOf)
}

// Queue is Source's.
func (c source) Queue(_ context.Context, host string, n int) iter.Seq2[inspect.Item, error] {
	return func(yield func(inspect.Item, error) bool) {
		items, err := c.Frontier.Queue(host, n)
		for i := range items {
			if !yield(itemOf(&items[i]), nil) {
				return
			}
		}
		if err != nil {
			yield(inspect.Item{}, err)
		}
	}
}

// Seen is Source's.
func (c source) Seen(_ context.Context, prefix string, n int) iter.Seq2[inspect.Known, error] {
	db, ok := c.views.Seen.(*seen.DB)
	if !ok {
		return func(func(inspect.Known, error) bool) {}
	}
	return first(n, convert(db.Scan(prefix), knownOf))
}

func convert[In, Out any](values iter.Seq2[In, error], to func(*In) Out) iter.Seq2[Out, error] {
	return func(yield func(Out, error) bool) {
		for v, err := range values {
			if !yield(to(&v), err) {
				return
			}
		}
	}
}

func first[T any](n int, values iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range values {
			if n--; n < 0 || !yield(v, err) {
				return
			}
		}
	}
}

func hostOf(h *frontier.HostInfo) inspect.Host {
	return inspect.Host{Key: h.Key, Waiting: h.Waiting, Active: h.Active, Next: h.Next, For: string(h.Why), Parked: h.Parked, Delay: h.Delay,
		CrawlDelay: min(h.Asked, h.Delay), Failures: h.Failures}
}

func itemOf(it *frontier.Item) inspect.Item {
	return inspect.Item{URL: it.URL, From: it.From, Path: it.Path, Depth: int(it.Depth), Tries: int(it.Tries)}
}

func knownOf(e *seen.Entry) inspect.Known {
	k := inspect.Known{URL: e.URL, State: "known", Depth: int(e.Depth), Since: e.First, Fetched: e.Fetched, Status: e.Status, Due: e.Due}
	if e.State == seen.Aside {
		k.State = "left out"
	}
	return k
}
