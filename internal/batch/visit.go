package batch

import (
	"context"
	"errors"
	"net/http"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
)

// visit visits a URL. An error ends the task; a failure of the URL is in its Document.
func (c *crawler) visit(ctx context.Context, v *frontier.Visit, resp *page.Response) error {
	u, err := weburl.Parse(v.URL)
	if err != nil {
		c.frontier.Done(v, frontier.Result{}) // cannot be: add refuses such URLs
		return nil
	}
	if v.Robots != "" {
		return c.visitRobots(ctx, v, u, resp)
	}
	leave := func(each func(*InURL) error) error {
		defer c.frontier.Done(v, frontier.Result{})
		for _, in := range c.pending.claim(v.URL) {
			if err := each(&in); err != nil {
				return err
			}
		}
		return nil
	}
	if why := c.hosts.abandoned(v.Host); why != "" {
		return leave(func(in *InURL) error { return c.out.fail(in, page.Unreachable, why) })
	}
	rules, known := c.rules.cache.Get(u.Origin())
	if !known {
		if c.rules.request(u) {
			c.frontier.Done(v, frontier.Result{Again: []item.Item{v.Item}})
			return nil
		}
		return leave(c.out.postpone) // the next round fetches them elsewhere
	}
	if ok, line := rules.Allowed(u.RequestURI()); !ok {
		if rules.Temporary() {
			detail := line + c.rules.failure(u.Origin())
			return leave(func(in *InURL) error { return c.out.fail(in, page.NoRules, detail) })
		}
		return leave(func(in *InURL) error { return c.out.refuse(in, ruleRobots, line) })
	}
	if addr, err := c.client.Resolve(ctx, u.Hostname(), u.Port()); err == nil && !c.frontier.Reserve(v, addr) {
		return nil // the frontier has it wait for the address
	}
	wishes := c.pending.claim(v.URL)
	if len(wishes) == 0 {
		c.frontier.Done(v, frontier.Result{}) // cannot be: a claim comes with the item
		return nil
	}
	return c.fetch(ctx, v, u, wishes, resp)
}

// A verdict is the consequence of an exchange.
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

// judge decides the consequence of an exchange. tries includes it.
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

// fetch requests a URL, and emits a Document of the answer for each wish.
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
	c.hosts.record(v.Host, &j)
	if j.again {
		v.Late = true
		c.pending.add(v.URL, wishes)
		c.frontier.Done(v, frontier.Result{Outcome: j.outcome, RetryAfter: j.ask, Again: []item.Item{v.Item}})
		c.task.Count(JobCrawl, "tries again", 1)
		return nil
	}
	if j.failure != "" {
		for i := range wishes {
			if err = c.out.fail(&wishes[i], j.failure, j.detail); err != nil {
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

// condition makes a request conditional, if all wishes know the same version of the page.
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

// keep emits the Documents of an answer, and follows a redirect on the same host.
func (c *crawler) keep(u weburl.URL, wishes []InURL, resp *page.Response, begun time.Time, asked bool) error {
	d, err := c.reader.read(resp)
	if err != nil {
		return err
	}
	d.Time, d.Took = begun, resp.Total
	d.Unmodified = asked && resp.Status == http.StatusNotModified
	for i := range wishes {
		in := &wishes[i]
		one := c.out.document(in)
		d.Collection, d.URL, d.From = one.Collection, one.URL, one.From
		d.Depth, d.Redirects, d.Seed = one.Depth, one.Redirects, one.Seed
		if d.Unmodified {
			d.Digest = in.Digest
		}
		if err := c.out.put(d.Key(), d.Append); err != nil {
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

// visitRobots requests a robots.txt, or the URL to which one redirects.
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
	c.hosts.record(v.Host, &j)
	if j.again && c.hosts.abandoned(v.Host) == "" {
		c.frontier.Done(v, frontier.Result{Outcome: j.outcome, RetryAfter: j.ask, Again: []item.Item{v.Item}})
		return nil
	}
	status := resp.Status
	if err != nil {
		status = 0
		c.rules.fail(v.Robots, j.detail)
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

// exchange returns the request and answer for a robots.txt; zero without an answer.
func (c *crawler) exchange(v *frontier.Visit, begun time.Time, status int, resp *page.Response) (d Document,
	err error) {
	if status == 0 {
		return d, nil
	}
	d, err = c.reader.answer(resp)
	d.Collection, d.URL, d.From, d.Redirects = noCollection, v.URL, v.From, int(v.Redirects)
	d.Time, d.Took, d.Malformed = begun, resp.Total, resp.Malformed
	return d, err
}

// settleRobots stores the rules of an origin, or follows a redirect.
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
	if err := c.out.put(r.Key(), r.Append); err != nil {
		return err
	}
	c.obey(v.Robots, c.rules.answer(v.Robots, status, resp.Body))
	return nil
}

// followRobots asks for a robots.txt where it redirects to: at once if this task has the host, otherwise in the next
// round.
func (c *crawler) followRobots(v *frontier.Visit, to weburl.URL, exchange Document) error {
	r := Rules{Origin: v.Robots, Time: c.Now().UTC(), Moved: to.String(), Exchange: exchange}
	if err := c.out.put(r.Key(), r.Append); err != nil {
		return err
	}
	it := item.Item{URL: to.String(), Robots: v.Robots, From: v.URL, Redirects: v.Redirects + 1}
	if to.Host() == v.Host || c.partitionOf(to.Host(), c.task.Of) == c.task.Index {
		c.hosts.push(to, it, c.least)
		return nil
	}
	in := InURL{Collection: c.Collections[0].Code, URL: to.String(), From: v.URL, Redirects: int(v.Redirects) + 1,
		Robots: v.Robots}
	if err := c.out.postpone(&in); err != nil {
		return err
	}
	c.rules.deferTo(v.Robots, to.String())
	if origin, err := weburl.Parse(v.Robots); err == nil {
		c.frontier.Unpark(origin.Host(), v.Robots)
	}
	return nil
}

// obey applies the rules of an origin's robots.txt, and lets its URLs go.
func (c *crawler) obey(origin string, rules *robots.Rules) {
	u, err := weburl.Parse(origin)
	if err != nil {
		return // cannot be: origins come from parsed URLs
	}
	if delay, asked := rules.Delay(); asked {
		c.frontier.SetDelay(u.Host(), max(delay, c.least, c.hosts.interval(u.Host())))
	}
	c.frontier.Unpark(u.Host(), origin)
}
