package inspect

import (
	"cmp"
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/content/policy"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/frontier"
	"kumo/internal/state/seen"
)

// A Live answers queries about a crawl in this process, except for Status, which the owner of the crawl provides. It
// does not read the crawl's files; the client does (see [View]), to keep load off the running crawl.
type Live struct {
	Engine   *crawl.Engine
	Frontier *frontier.Frontier
	Known    *seen.DB // nil for a crawl without a folder

	// How long Explain waits for the disk before it returns without the disk's data; 0: no limit.
	DiskTimeout time.Duration

	pending sync.WaitGroup
	waiting atomic.Int32 // queries
}

// maxPending is the maximum number of queries that wait for the disk.
const maxPending = 16

// Explain implements [Source].
func (l *Live) Explain(ctx context.Context, url string) (*Explanation, error) {
	return l.explainWithin(ctx, func(tell func(crawl.Explanation)) (*crawl.Explanation, error) {
		return l.Engine.Inspector.Explain(url, tell)
	})
}

// explainWithin returns an explanation, which is partial if the disk does not answer in time.
func (l *Live) explainWithin(ctx context.Context,
	explain func(tell func(crawl.Explanation)) (*crawl.Explanation, error)) (*Explanation, error) {
	if l.waiting.Add(1) > maxPending {
		l.waiting.Add(-1)
		return nil, fmt.Errorf("the disk does not answer: %d queries are waiting", maxPending)
	}
	var e *crawl.Explanation
	var err error
	var soFar atomic.Pointer[crawl.Explanation]
	done := make(chan struct{})
	l.pending.Go(func() {
		defer close(done)
		defer l.waiting.Add(-1)
		e, err = explain(func(e crawl.Explanation) { soFar.Store(&e) })
	})
	var late <-chan time.Time
	if l.DiskTimeout > 0 {
		late = time.After(l.DiskTimeout)
	}
	select {
	case <-done:
		if err != nil {
			return nil, err
		}
		return explanationOf(e), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late:
	}
	known := soFar.Load()
	if known == nil {
		return nil, fmt.Errorf("no answer from the crawl for %v", l.DiskTimeout)
	}
	x := explanationOf(known)
	x.Unread = l.DiskTimeout
	return x, nil
}

// Wait returns when no query waits for the disk. Explain must not be called concurrently.
func (l *Live) Wait() { l.pending.Wait() }

func explanationOf(e *crawl.Explanation) *Explanation {
	x := &Explanation{URL: e.URL.String(), Scope: Scope{In: e.InScope, Rule: e.Rule, Why: e.Why}, GivenUp: e.GivenUp,
		Claiming: e.Claiming, Elsewhere: e.Elsewhere, Overrides: e.Overrides, LinksCut: e.LinksCut,
		NeedsScript: e.NeedsScript, RenderingEnded: e.RenderingEnded}
	if e.Render != policy.RenderNever {
		x.Render = string(e.Render)
	}
	if e.Entry != nil && e.State != seen.Unknown {
		x.Known = new(knownOf(e.Entry))
	}
	if e.Entry != nil && !e.Entry.Fetched.IsZero() {
		x.Page = &Page{Time: e.Entry.Fetched, Status: e.Entry.Status, Depth: int(e.Entry.Depth)}
		if e.Entry.Digest != [20]byte{} {
			x.Page.Digest = "sha1:" + base32.StdEncoding.EncodeToString(e.Entry.Digest[:])
		}
	}
	if e.HostMet {
		x.Host = new(hostOf(&e.Host))
		x.Host.Pages, x.Host.Most = e.Pages, e.Most
	}
	if r := e.Ranking; r != nil {
		x.Ranking = &Ranking{Order: r.Order, Importance: r.Importance, ByLinks: r.ByLinks, Rules: r.Rules, Sitemap: r.Sitemap}
		if r.Factor != 1 {
			x.Ranking.Factor = r.Factor
		}
	}
	explainWait(x, e)
	switch {
	case e.IgnoresRobots:
		x.Robots = &Robots{Ignored: true, Allowed: true}
	case e.RobotsKnown:
		x.Robots = &Robots{Allowed: e.Allowed, Line: e.By.Number, Text: e.By.Text}
	}
	return x
}

// explainWait adds the position of a pending URL.
func explainWait(x *Explanation, e *crawl.Explanation) {
	switch {
	case e.Found != nil:
		x.Waits, x.Place, x.Active = new(itemOf(&e.Found.Item)), e.Found.Position, e.Found.UnderWay
	case e.Abandoned != nil:
		x.Waits = new(itemOf(e.Abandoned))
	}
	if p := e.Pending; p != nil {
		x.Merge = &Skip{Rule: e.PendingRule, From: p.From, Depth: int(p.Depth)}
	}
}

// Hosts implements [Source].
func (l *Live) Hosts(_ context.Context, n int) iter.Seq2[Host, error] {
	return convert(l.Frontier.Inspector().Hosts(n, frontier.ByPending), hostOf)
}

// Queue implements [Source].
func (l *Live) Queue(_ context.Context, host string, n int) iter.Seq2[Item, error] {
	return convertAll(func() ([]frontier.Item, error) { return l.queue(host, n) }, itemOf)
}

// convertAll yields the results of find, converted, and then its error.
func convertAll[In, Out any](find func() ([]In, error), to func(*In) Out) iter.Seq2[Out, error] {
	return func(yield func(Out, error) bool) {
		all, err := find()
		for i := range all {
			if !yield(to(&all[i]), nil) {
				return
			}
		}
		if err != nil {
			yield(*new(Out), err)
		}
	}
}

// queue returns the merged queue of all slices of a host.
func (l *Live) queue(host string, n int) (items []frontier.Item, err error) {
	for slice := range l.Frontier.Slices().All(host) {
		some, failed := l.Frontier.Inspector().Queue(slice, n)
		items, err = append(items, some...), errors.Join(err, failed)
	}
	if l.Frontier.Slices() == nil {
		return items, err
	}
	slices.SortFunc(items, func(a, b frontier.Item) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Seq, b.Seq))
	})
	return items[:min(n, len(items))], err
}

// Seen implements [Source].
func (l *Live) Seen(_ context.Context, prefix string, n int) iter.Seq2[Known, error] {
	if l.Known == nil {
		return func(func(Known, error) bool) {}
	}
	return first(n, convert(l.Known.Scan(prefix), knownOf))
}

// HostsFrom implements [Source]. It lists the hosts of all known URLs, also those without pending ones.
func (l *Live) HostsFrom(_ context.Context, prefix, after string, n int) iter.Seq2[Host, error] {
	return convertAll(func() ([]Host, error) {
		if l.Known == nil {
			return nil, nil
		}
		if name, whole := strings.CutSuffix(prefix, "/"); whole && after == "" && l.isQueued(name) {
			return l.hosts([]string{name}), nil // the only such host
		}
		behind := l.Known.Arrange(orderTimeout)
		names, err := l.Known.Hosts(prefix, after, n)
		if err == nil && behind > 0 {
			err = ErrIncomplete
		}
		return l.hosts(names), err
	}, func(h *Host) Host { return *h })
}

// hosts returns the state of hosts, each over all its slices. It queries fewer hosts at a time if they have many
// slices.
func (l *Live) hosts(names []string) []Host {
	all := make([]Host, 0, len(names))
	for some := range slices.Chunk(names, max(1, maxSliceQueries/l.Frontier.Slices().Count())) {
		all = append(all, l.someHosts(some)...)
	}
	return all
}

const maxSliceQueries = 2048 // slices per query of the frontier

func (l *Live) someHosts(names []string) []Host {
	var keys []string
	var ends []int // end of each host's slices in keys
	for _, name := range names {
		keys = slices.AppendSeq(keys, l.Frontier.Slices().All(name))
		ends = append(ends, len(keys))
	}
	infos, all, from := l.Frontier.Inspector().Infos(keys), make([]Host, len(names)), 0
	for i, name := range names {
		all[i] = mergeSlices(name, infos[from:ends[i]])
		from = ends[i]
	}
	return all
}

// mergeSlices combines the states of a host's slices.
func mergeSlices(name string, slices []frontier.HostInfo) Host {
	x := Host{Key: name}
	for i := range slices {
		if slices[i].Key == "" {
			continue
		}
		h := hostOf(&slices[i])
		h.Key, h.Waiting, h.Active = name, h.Waiting+x.Waiting, h.Active+x.Active
		if x.For != "" && !x.Next.After(h.Next) { // the earliest slice counts
			h.Next, h.For = x.Next, x.For
		}
		h.Failures, h.Parked = max(h.Failures, x.Failures), h.Parked || x.Parked
		x = h
	}
	return x
}

// SeenFrom implements [Source].
func (l *Live) SeenFrom(_ context.Context, prefix, after string, n int) iter.Seq2[Known, error] {
	if l.Known == nil {
		return func(func(Known, error) bool) {}
	}
	return func(yield func(Known, error) bool) {
		behind := l.Known.Arrange(orderTimeout)
		for k, err := range first(n, convert(l.Known.ScanAfter(prefix, after), knownOf)) {
			if !yield(k, err) || err != nil {
				return
			}
		}
		if behind > 0 {
			yield(Known{}, ErrIncomplete)
		}
	}
}

// ErrIncomplete ends the results of HostsFrom and SeenFrom if some may be missing.
var ErrIncomplete = errors.New("some URLs are missing while the newest are being sorted: try again in a moment")

// orderTimeout is how long HostsFrom and SeenFrom wait for the sorting.
const orderTimeout = 100 * time.Millisecond

// isQueued reports whether the frontier has the host.
func (l *Live) isQueued(name string) bool {
	for slice := range l.Frontier.Slices().All(name) {
		if _, met := l.Frontier.Host(slice); met {
			return true
		}
	}
	return false
}

// Top implements [Source].
func (l *Live) Top(ctx context.Context, n int, bySite bool) iter.Seq2[Important, error] {
	return convertAll(func() ([]crawl.Important, error) {
		return l.Engine.Inspector.Top(ctx, n, bySite)
	}, func(i *crawl.Important) Important {
		x := Important{URL: i.URL, Importance: i.Importance, Depth: int(i.Depth), Status: i.Status,
			Fetched: !i.Fetched.IsZero()}
		if bySite {
			x.Site, x.URLs, x.Waiting, x.Sum = i.Site, i.URLs, i.Waiting, i.Sum
		}
		return x
	})
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

func hostOf(h *frontier.HostInfo) Host {
	x := Host{Key: h.Key, Waiting: h.Pending, Active: h.Active, Next: h.Next, For: string(h.Why), Parked: h.Parked,
		Delay: h.Delay, CrawlDelay: min(h.RequestedDelay, h.Delay) / time.Duration(max(h.Slices, 1)), Failures: h.Failures}
	if h.Slices > 1 {
		x.Slices = h.Slices
	}
	if h.Why == frontier.WhyRetryAfter || h.Why == frontier.WhyBackoff {
		x.MaxBackoff = h.MaxWait
	}
	return x
}

func itemOf(it *frontier.Item) Item {
	return Item{URL: it.URL, From: it.From, Path: it.Path, Depth: int(it.Depth), Tries: int(it.Tries),
		Deferred: it.Deferred}
}

func knownOf(e *seen.Entry) Known {
	k := Known{URL: e.URL, State: "known", Depth: int(e.Depth), Since: e.First, Fetched: e.Fetched, Status: e.Status,
		Due: e.Due}
	if e.State == seen.Deferred {
		k.State = "left out"
	}
	return k
}
