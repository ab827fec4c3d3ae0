package batch

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
)

// visit visits a URL. An error ends the task; failures of the URL are recorded in its Document.
func (c *crawler) visit(ctx context.Context, v *frontier.Visit, resp *page.Response) error {
	u, err := weburl.Parse(v.URL)
	if err != nil {
		c.frontier.Done(v, frontier.Result{}) // unreachable: add refuses such URLs
		return nil
	}
	if v.Robots == "" {
		if over, err := c.skip(v, u); over {
			return err
		}
	}
	if addr, err := c.client.Resolve(ctx, u.Hostname(), u.Port()); err == nil && !c.frontier.Reserve(v, addr) {
		return nil // the frontier queues it for the address
	}
	return c.fetch(ctx, v, u, resp)
}

// skip ends the visit of a URL that must not be requested, or not now, and reports whether it did.
func (c *crawler) skip(v *frontier.Visit, u weburl.URL) (over bool, err error) {
	origin := u.Origin()
	var each func(*InURL) error
	if a, gone := c.origins.Abandoned(origin); gone {
		each = func(in *InURL) error { return c.out.fail(in, a.Failure, a.Why) }
	} else if rules, known := c.gate.Rules.Get(origin); !known {
		if !c.rules.isDeferred(origin) {
			c.gate.Await(v, origin, item.Item{})
			return true, nil
		}
		each = c.out.postpone // the next round fetches them in another task
	} else if ok, line := rules.Allowed(u.RequestURI()); ok {
		return false, nil
	} else if rules.Temporary() {
		each = func(in *InURL) error { return c.out.fail(in, page.NoRobots, line+c.rules.failure(origin)) }
	} else {
		each = func(in *InURL) error { return c.out.refuse(in, ruleRobots, line) }
	}
	defer c.frontier.Done(v, frontier.Result{})
	for _, in := range c.pending.claim(v.URL) {
		if err := each(&in); err != nil {
			return true, err
		}
	}
	return true, nil
}

// fetch requests a URL or a robots.txt, and emits the result unless it is retried.
func (c *crawler) fetch(ctx context.Context, v *frontier.Visit, u weburl.URL, resp *page.Response) error {
	req := fetch.Request{URL: v.URL}
	judge, conditional := visit.Judge, false
	var wishes []InURL
	if v.Robots != "" {
		req.MaxBody, judge = visit.MaxRobots, visit.JudgeRobots
	} else if wishes = c.pending.claim(v.URL); len(wishes) > 0 {
		conditional = condition(wishes, &req)
	} else {
		c.frontier.Done(v, frontier.Result{}) // unreachable: an item in the frontier has InURLs
		return nil
	}
	v.Tries++
	begun := c.Now().UTC()
	err := c.client.Get(ctx, req, resp)
	if ctx.Err() != nil {
		c.frontier.Done(v, frontier.Result{})
		return ctx.Err()
	}
	j := judge(resp, err, int(v.Tries), cmp.Or(c.Fetching.Tries, 3), c.Now())
	gone := c.judgeOrigin(u.Origin(), v, &j)
	r := frontier.Result{Outcome: j.Outcome, RetryAfter: j.RetryAfter}
	if v.Robots != "" {
		c.task.Count(JobCrawl, "robots.txt requests", 1)
		if j.Again && !gone {
			r.Requeue = []item.Item{v.Item}
		} else if err := c.readRobots(v, u, resp, begun, &j); err != nil {
			return err
		}
		c.frontier.Done(v, r)
		return nil
	}
	c.task.Count(JobCrawl, "requests", 1)
	c.task.Count(JobCrawl, "bytes received", resp.RawLen())
	err = nil
	switch {
	case j.Again:
		v.QueueLast = j.Late
		c.pending.add(v.URL, wishes)
		r.Requeue = []item.Item{v.Item}
		c.task.Count(JobCrawl, "tries again", 1)
	case j.Failure != page.None:
		for i := range wishes {
			if err = c.out.fail(&wishes[i], j.Failure, j.Detail); err != nil {
				break
			}
		}
	default:
		c.pages.Add(1)
		err = c.emitDocuments(ctx, u, wishes, resp, begun, conditional)
	}
	c.frontier.Done(v, r)
	return err
}

// judgeOrigin counts the outcome of a visit for its origin, abandons it after many failures in a row, and reports
// whether it is abandoned.
func (c *crawler) judgeOrigin(origin string, v *frontier.Visit, j *visit.Verdict) bool {
	if a, tooMuch := c.origins.Judge(origin, v.Started, j, false); tooMuch {
		c.origins.Abandon(origin, visit.Abandonment{Failure: page.Unreachable,
			Why: "abandoned after failures in a row: " + a.Why})
	}
	_, gone := c.origins.Abandoned(origin)
	return gone
}

// condition makes a request conditional if all InURLs know the same version of the page.
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

// emitDocuments emits the Documents of an answer, and follows a redirect on the same host.
func (c *crawler) emitDocuments(ctx context.Context, u weburl.URL, wishes []InURL, resp *page.Response, begun time.Time,
	asked bool) error {
	d, err := c.reader.read(ctx, resp)
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
	if d.RedirectTo == "" {
		return nil
	}
	return c.follow(u, d.RedirectTo, wishes)
}

// follow adds the target of a redirect on the same host in the first round, as for seeds. Other redirects wait for the
// next round, as links do: another host may belong to another task, and in later rounds only optimize can determine
// which URLs were fetched before.
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

// readRobots emits the result of a robots.txt request: the rules of its origin, or its redirect target.
func (c *crawler) readRobots(v *frontier.Visit, u weburl.URL, resp *page.Response, begun time.Time,
	j *visit.Verdict) error {
	r := RobotsRecord{Origin: v.Robots, Time: c.Now().UTC()}
	if j.Failure != page.None {
		c.rules.setFailure(v.Robots, j.Detail)
	} else {
		if err := fetch.Decode(resp, visit.MaxRobots); errors.Is(err, fetch.ErrDisk) {
			return err
		}
		d, err := c.reader.rawDocument(resp)
		if err != nil {
			return err
		}
		d.Collection, d.URL, d.From, d.Redirects = sharedCode, v.URL, v.From, int(v.Redirects)
		d.Time, d.Took, d.Malformed = begun, resp.Total, resp.Malformed
		r.Exchange, r.Status = d, resp.Status
	}
	next, to := c.gate.HandleAnswer(v, u, r.Status, resp)
	if !to.IsZero() {
		r.Status, r.RedirectTo = 0, next.URL
	} else if r.Status >= 200 && r.Status <= 299 {
		r.Body = resp.Body
	}
	if err := c.out.put(r.Key(), r.Append); err != nil || to.IsZero() {
		return err
	}
	if to.Host() == v.Host || c.partitionOf(to.Host(), c.task.Total) == c.task.Index {
		c.hosts.push(to, next, c.minInterval)
		return nil
	}
	in := InURL{Collection: c.Collections[0].Code, URL: next.URL, From: v.URL, Redirects: int(next.Redirects),
		Robots: v.Robots}
	c.rules.setDeferred(v.Robots, true)
	c.gate.Forget(v.Robots)
	c.frontier.Unpark(item.HostOf(v.Robots), v.Robots)
	return c.out.postpone(&in)
}
