package batch

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/parse"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
)

// visit takes a URL through its life. An error ends the task; what goes wrong with a URL is in its Document.
func (c *crawler) visit(ctx context.Context, v *frontier.Visit, resp *page.Response) error {
	u, err := weburl.Parse(v.URL)
	if err != nil {
		c.frontier.Done(v, frontier.Result{}) // cannot be: the frontier takes none
		return nil
	}
	if v.Robots != "" {
		return c.visitRobots(ctx, v, u, resp)
	}
	leave := func(each func(*InURL) error) error {
		defer c.frontier.Done(v, frontier.Result{})
		for _, in := range c.claim(v.URL) {
			if err := each(&in); err != nil {
				return err
			}
		}
		return nil
	}
	if why := c.isDead(v.Host); why != "" {
		return leave(func(in *InURL) error { return c.fail(in, page.Unreachable, why) })
	}
	rules, known := c.robots.Get(u.Origin())
	if !known {
		if c.awaitRobots(u) {
			c.frontier.Done(v, frontier.Result{Again: []item.Item{v.Item}})
			return nil
		}
		return leave(c.postpone) // the next round asks for them elsewhere
	}
	if ok, line := rules.Allowed(u.RequestURI()); !ok {
		if rules.Temporary() {
			detail := line + c.whyNoRules(u.Origin())
			return leave(func(in *InURL) error { return c.fail(in, page.NoRules, detail) })
		}
		return leave(func(in *InURL) error { return c.refuse(in, ruleRobots, line) })
	}
	if addr, err := c.client.Resolve(ctx, u.Hostname(), u.Port()); err == nil && !c.frontier.Reserve(v, addr) {
		return nil // the address's turn is later
	}
	wishes := c.claim(v.URL)
	if len(wishes) == 0 {
		c.frontier.Done(v, frontier.Result{}) // cannot be: who claims them takes the item out
		return nil
	}
	return c.fetch(ctx, v, u, wishes, resp)
}

func (c *crawler) isDead(host string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.hosts[host]; h != nil {
		return h.dead
	}
	return ""
}

// awaitRobots has the host wait for its origin's robots.txt, which the first to want it asks for. It returns false,
// with nothing done, if this round cannot have it.
func (c *crawler) awaitRobots(u weburl.URL) bool {
	origin, host := u.Origin(), u.Host()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, elsewhere := c.deferred[origin]; elsewhere {
		return false
	}
	if _, known := c.robots.Get(origin); known { // by now
		return true
	}
	c.frontier.Park(host, origin)
	if !c.awaited[origin] {
		c.awaited[origin] = true
		c.frontier.Push(host, item.Item{URL: origin + "/robots.txt", Robots: origin})
	}
	return true
}

// A verdict is what follows from an exchange.
type verdict struct {
	again   bool
	outcome frontier.Outcome
	ask     time.Duration // Retry-After
	failure page.Failure
	detail  string
}

func (c *crawler) tries() int {
	if c.Fetching.Tries > 0 {
		return c.Fetching.Tries
	}
	return 3
}

// judge decides what follows from an exchange, tries counting it already.
func (c *crawler) judge(err error, resp *page.Response, tries int) verdict {
	if err != nil {
		j := verdict{outcome: frontier.Failed, failure: page.Internal, detail: err.Error()}
		if fe, ok := errors.AsType[*fetch.Error](err); ok {
			j.failure = fe.Failure
		}
		if j.failure == page.Private {
			j.outcome = frontier.NoRequest
			return j
		}
		j.again = tries < c.tries()
		return j
	}
	switch s := resp.Status; {
	case s == http.StatusTooManyRequests, s == http.StatusServiceUnavailable:
		most := throttles
		if s == http.StatusServiceUnavailable {
			most = c.tries()
		}
		return verdict{again: tries < most, outcome: frontier.Throttled, ask: resp.RetryAfter(c.Now())}
	case s == http.StatusRequestTimeout, s == http.StatusInternalServerError, s == http.StatusBadGateway,
		s == http.StatusGatewayTimeout, resp.Truncated == page.Disconnect:
		return verdict{again: tries < c.tries(), outcome: frontier.Answered}
	}
	return verdict{outcome: frontier.Answered}
}

// health counts a host's failures, and gives it up after many.
func (c *crawler) health(host string, j *verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[host]
	switch {
	case h == nil, j.outcome == frontier.NoRequest:
	case j.failure == "":
		h.failures = 0
	default:
		if h.failures++; h.failures >= hostFailures && h.dead == "" {
			h.dead = fmt.Sprintf("given up after %d failures in a row: %s", h.failures, j.detail)
		}
	}
}

// fetch asks for a URL, and makes a Document of the answer for each who wants it.
func (c *crawler) fetch(ctx context.Context, v *frontier.Visit, u weburl.URL, wishes []InURL,
	resp *page.Response) error {
	req := fetch.Request{URL: v.URL}
	asked := condition(wishes, &req)
	v.Tries++
	begun := c.Now().UTC()
	err := c.client.Get(ctx, req, resp)
	if ctx.Err() != nil {
		c.frontier.Done(v, frontier.Result{})
		return ctx.Err()
	}
	c.task.Count(JobCrawl, "requests", 1)
	c.task.Count(JobCrawl, "bytes received", resp.RawLen())
	j := c.judge(err, resp, int(v.Tries))
	c.health(v.Host, &j)
	if j.again {
		v.Late = true
		c.unclaim(v.URL, wishes)
		c.frontier.Done(v, frontier.Result{Outcome: j.outcome, RetryAfter: j.ask, Again: []item.Item{v.Item}})
		c.task.Count(JobCrawl, "tries again", 1)
		return nil
	}
	if j.failure != "" {
		for i := range wishes {
			if err = c.fail(&wishes[i], j.failure, j.detail); err != nil {
				break
			}
		}
	} else {
		c.pages.Add(1)
		err = c.keep(u, wishes, resp, begun, asked)
	}
	c.frontier.Done(v, frontier.Result{Outcome: j.outcome, RetryAfter: j.ask})
	return err
}

// condition asks only for what has changed, if all who want the URL know the same of it.
func condition(wishes []InURL, req *fetch.Request) bool {
	first := &wishes[0]
	for i := range wishes {
		if in := &wishes[i]; !in.Known || in.ETag != first.ETag || !in.Modified.Equal(first.Modified) ||
			in.Digest != first.Digest {
			return false
		}
	}
	req.ETag, req.Modified = first.ETag, first.Modified
	return first.ETag != "" || !first.Modified.IsZero()
}

// keep emits the Documents of an answer, and goes after a redirect on the same host.
func (c *crawler) keep(u weburl.URL, wishes []InURL, resp *page.Response, begun time.Time, asked bool) error {
	d, err := c.read(resp)
	if err != nil {
		return err
	}
	d.Time, d.Took = begun, resp.Total
	d.Unmodified = asked && resp.Status == http.StatusNotModified
	for i := range wishes {
		in := &wishes[i]
		one := c.document(in)
		d.Collection, d.URL, d.From = one.Collection, one.URL, one.From
		d.Depth, d.Redirects, d.Seed = one.Depth, one.Redirects, one.Seed
		if d.Unmodified {
			d.Digest = in.Digest
		}
		if err := c.put(d.Key(), d.Append); err != nil {
			return err
		}
		if err := c.move(&d); err != nil {
			return err
		}
		c.task.Count(in.Collection, "fetched", 1)
		if d.hasPage() {
			c.task.Count(in.Collection, counterFound, 1)
		}
	}
	if d.To == "" {
		return nil
	}
	return c.follow(u, d.To, wishes)
}

// follow goes after a redirect on the same host in the first round, as of seeds. All others wait for the next round, as
// other links do: another host may be another task's, and in a later round only optimize can tell what was fetched
// before.
func (c *crawler) follow(from weburl.URL, to string, wishes []InURL) error {
	u, err := weburl.Parse(to)
	if err != nil || u.Host() != from.Host() || c.Round > 0 {
		return nil
	}
	var next []InURL
	for i := range wishes {
		in := &wishes[i]
		next = append(next, InURL{Collection: in.Collection, URL: to, From: in.URL, Depth: in.Depth,
			Redirects: in.Redirects + 1, Seed: in.Seed})
	}
	return c.add(to, next)
}

// answer makes a Document of the bytes of an answer.
func (c *crawler) answer(resp *page.Response) (d Document, err error) {
	d = Document{Status: resp.Status, Addr: resp.Addr, Request: resp.RequestRaw, Raw: resp.Raw, HeadLen: resp.HeadLen,
		Truncated: resp.Truncated, MetaFollow: true, MetaIndex: true}
	if resp.Far != nil {
		d.Raw = make([]byte, resp.Far.Raw.Len())
		if _, err := resp.Far.Raw.ReadAt(d.Raw, 0); err != nil && !errors.Is(err, io.EOF) {
			return d, err
		}
	}
	h := sha1.New()
	if _, err := io.Copy(h, resp.PayloadReader()); err != nil {
		return d, err
	}
	d.Digest = page.Digest(h.Sum(nil))
	return d, nil
}

// read makes a Document of an answer: its bytes, and what they say.
func (c *crawler) read(resp *page.Response) (d Document, err error) {
	c.reading <- struct{}{} // bodies in memory are few, whatever their number under way
	defer func() { <-c.reading }()
	if d, err = c.answer(resp); err != nil {
		return d, err
	}
	work := c.parsers.Get().(*parsing)
	defer c.parsers.Put(work)
	if parse.Readable(parse.MediaType(resp.Header.Get("Content-Type"))) {
		if err := fetch.Decode(resp, maxDecoded); errors.Is(err, fetch.ErrDisk) {
			return d, err
		} else if err != nil {
			resp.Malformed = err.Error()
		}
	}
	if err := work.parser.Parse(resp, &work.page); err != nil && resp.Malformed == "" {
		resp.Malformed = err.Error()
	}
	d.Malformed = resp.Malformed
	c.describe(&d, resp, &work.page)
	return d, nil
}

// describe notes what a page says.
func (c *crawler) describe(d *Document, resp *page.Response, pg *page.Page) {
	for i := range pg.Links {
		if pg.Links[i].Kind == page.Redirect {
			d.To = strings.Clone(pg.Links[i].URL)
			return
		}
	}
	d.Type, d.Charset, d.CharsetHow = pg.Sniffed, pg.Charset, pg.CharsetHow
	d.MetaFollow, d.MetaIndex, d.NoArchive = !pg.Robots.NoFollow, !pg.Robots.NoIndex, pg.Robots.NoArchive
	if at := pg.Robots.UnavailableAfter; !at.IsZero() && !c.Now().Before(at) {
		d.MetaIndex = false
	}
	if resp.Status != http.StatusOK || !parse.IsHTML(pg.Sniffed) {
		return
	}
	d.Title = pg.Title
	defer func() { d.Lang, d.Share, d.Confidence = pageLanguage(d.Text, pg.Lang) }()
	if c.Text == nil {
		return
	}
	text, _ := c.Text(resp, pg) // what was found before a bound is worth more than that there is one
	if text != nil && text.Text != "" {
		d.Headline, d.Text = text.Headline, text.Text
		d.Simhash = simhash(text.Text)
	}
}

// visitRobots asks for a robots.txt, or for the place that one redirects to.
func (c *crawler) visitRobots(ctx context.Context, v *frontier.Visit, u weburl.URL, resp *page.Response) error {
	if addr, err := c.client.Resolve(ctx, u.Hostname(), u.Port()); err == nil && !c.frontier.Reserve(v, addr) {
		return nil
	}
	v.Tries++
	begun := c.Now().UTC()
	err := c.client.Get(ctx, fetch.Request{URL: v.URL, MaxBody: maxRobots}, resp)
	if ctx.Err() != nil {
		c.frontier.Done(v, frontier.Result{})
		return ctx.Err()
	}
	c.task.Count(JobCrawl, "robots.txt requests", 1)
	j := c.judge(err, resp, int(v.Tries))
	if status := resp.Status; err == nil && (status >= 500 || status == http.StatusTooManyRequests) {
		j = verdict{again: int(v.Tries) < robotsTries, outcome: frontier.Throttled, ask: resp.RetryAfter(c.Now()),
			failure: page.NoRules}
	}
	c.health(v.Host, &j)
	if j.again && c.isDead(v.Host) == "" {
		c.frontier.Done(v, frontier.Result{Outcome: j.outcome, RetryAfter: j.ask, Again: []item.Item{v.Item}})
		return nil
	}
	status := resp.Status
	if err != nil {
		status = 0
		c.noteNoRules(v.Robots, j.detail)
	} else if derr := fetch.Decode(resp, maxRobots); errors.Is(derr, fetch.ErrDisk) {
		return derr
	}
	exchange, derr := c.exchange(v, begun, status, resp)
	if derr != nil {
		return derr
	}
	err = c.settleRobots(v, u, exchange, resp)
	c.frontier.Done(v, frontier.Result{Outcome: j.outcome, RetryAfter: j.ask})
	return err
}

// noteNoRules notes why there is no answer of an origin's robots.txt.
func (c *crawler) noteNoRules(origin, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.noRules) < mostWaiting {
		c.noRules[origin] = why
	}
}

func (c *crawler) whyNoRules(origin string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if why := c.noRules[origin]; why != "" {
		return ": " + why
	}
	return ""
}

// exchange is what was asked and answered for a robots.txt; zero without an answer.
func (c *crawler) exchange(v *frontier.Visit, begun time.Time, status int, resp *page.Response) (d Document,
	err error) {
	if status == 0 {
		return d, nil
	}
	d, err = c.answer(resp)
	d.Collection, d.URL, d.From, d.Redirects = noCollection, v.URL, v.From, int(v.Redirects)
	d.Time, d.Took, d.Malformed = begun, resp.Total, resp.Malformed
	return d, err
}

// settleRobots makes rules of the answer for an origin, or follows a redirect.
func (c *crawler) settleRobots(v *frontier.Visit, u weburl.URL, exchange Document, resp *page.Response) error {
	status := exchange.Status
	if status >= 300 && status < 400 {
		if to, err := u.Resolve(resp.Header.Get("Location")); err == nil && to.Web() && v.Redirects < robots.MaxRedirects {
			return c.followRobots(v, to.Canonical(), exchange)
		}
	}
	r := Rules{Origin: v.Robots, Time: c.Now().UTC(), Status: status, Body: resp.Body, Exchange: exchange}
	if status < 200 || status > 299 {
		r.Body = nil
	}
	if err := c.put(r.Key(), r.Append); err != nil {
		return err
	}
	c.obey(v.Robots, c.robots.Answer(v.Robots, status, resp.Body))
	return nil
}

// followRobots asks for a robots.txt where it redirects to: at once if this task has the host, otherwise in the next
// round.
func (c *crawler) followRobots(v *frontier.Visit, to weburl.URL, exchange Document) error {
	r := Rules{Origin: v.Robots, Time: c.Now().UTC(), Moved: to.String(), Exchange: exchange}
	if err := c.put(r.Key(), r.Append); err != nil {
		return err
	}
	it := item.Item{URL: to.String(), Robots: v.Robots, From: v.URL, Redirects: v.Redirects + 1}
	if to.Host() == v.Host || c.partitionOf(to.Host(), c.task.Of) == c.task.Index {
		c.pushItem(to, it, c.least)
		return nil
	}
	in := InURL{Collection: c.Collections[0].Code, URL: to.String(), From: v.URL, Redirects: int(v.Redirects) + 1,
		Robots: v.Robots}
	if err := c.postpone(&in); err != nil {
		return err
	}
	c.mu.Lock()
	c.deferred[v.Robots] = to.String()
	delete(c.awaited, v.Robots)
	c.mu.Unlock()
	if origin, err := weburl.Parse(v.Robots); err == nil {
		c.frontier.Unpark(origin.Host(), v.Robots)
	}
	return nil
}

// obey lets the URLs of an origin go, now that its rules are known.
func (c *crawler) obey(origin string, rules *robots.Rules) {
	u, err := weburl.Parse(origin)
	if err != nil {
		return // cannot be: origins come from parsed URLs
	}
	c.mu.Lock()
	delete(c.awaited, origin)
	interval := c.least
	if h := c.hosts[u.Host()]; h != nil {
		interval = max(interval, h.interval)
	}
	c.mu.Unlock()
	if delay, asked := rules.Delay(); asked {
		c.frontier.SetDelay(u.Host(), max(delay, interval))
	}
	c.frontier.Unpark(u.Host(), origin)
}
