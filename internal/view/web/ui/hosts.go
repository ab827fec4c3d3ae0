package ui

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/base/weburl"
	"kumo/internal/state/statefile"
)

// A hostPage is a part of a list of hosts.
type hostPage struct {
	Hosts []inspect.Host `json:"hosts"`
	Next  string         `json:"next,omitempty"` // value for "after" to continue; missing: these are the last
	// some hosts are temporarily missing: the crawl is being scanned, or hosts in memory are being sorted
	Partial bool      `json:"partial,omitempty"`
	Time    time.Time `json:"time,omitzero"` // time of the list, if it may be old
}

type hostAnswer struct {
	Host   inspect.Host             `json:"host"`
	Robots []statefile.RobotsAnswer `json:"robots"` // last answers, by scheme
	Queue  []inspect.Item           `json:"queue"`  // first pending URLs
	// the crawl's files are being scanned for the first time: robots.txt answers may be temporarily missing
	Partial bool `json:"partial,omitempty"`
}

func getHosts(c *crawl, r *http.Request, n int) (any, error) {
	switch by := r.FormValue("by"); {
	case by == "waiting" && r.FormValue("prefix")+r.FormValue("after") == "":
		return c.hosts.first(r.Context(), n)
	case by != "":
		return nil, badRequest("by is %q: expected \"waiting\", without prefix and after", by)
	}
	return c.hostsFrom(r.Context(), r.FormValue("prefix"), r.FormValue("after"), n)
}

// hostsFrom returns up to n hosts with a prefix, after another one.
func (c *crawl) hostsFrom(ctx context.Context, prefix, after string, n int) (p hostPage, err error) {
	var more bool
	err = c.view.use(ctx, func(v *inspect.View) (err error) {
		p.Hosts, p.Partial, more, err = collectUpTo(n, v.HostsFrom(ctx, prefix, after, n+1))
		return err
	})
	if more {
		p.Next = p.Hosts[n-1].Key
	}
	return p, err
}

// A hostRanking has the hosts with the most pending URLs as of the last query. A query reads all hosts, up to millions.
// So it runs rarely, and requests get an older ranking in the meantime, if there is one.
type hostRanking struct {
	view  *sharedView
	queue *queue
	done  context.Context

	mu       sync.Mutex // guards the fields below
	all      []inspect.Host
	n        int // requested number
	time     time.Time
	took     time.Duration
	err      error         // error of the last query
	querying chan struct{} // closed when the running query ends; nil: none runs
	begun    time.Time     // start of that query
}

const (
	minHostAge     = 2 * time.Second
	rankingTimeout = time.Minute // for one query
)

// hostPatience is how long to wait for a query, if there is an older ranking and if there is none. The first visitor of
// such a crawl gets an empty list, and the complete one a moment later.
var hostPatience = [2]time.Duration{50 * time.Millisecond, 150 * time.Millisecond}

// first returns the first n hosts.
func (l *hostRanking) first(ctx context.Context, n int) (p hostPage, err error) {
	looking, patience := l.refresh(n)
	if looking != nil {
		select {
		case <-looking:
		case <-ctx.Done():
			return p, ctx.Err()
		case <-time.After(patience):
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil && (l.querying == nil || l.n == 0):
		return p, l.err
	case l.n == 0 && l.querying != nil && time.Since(l.begun) > rankingTimeout:
		return p, l.queue.hungProblem(1, time.Since(l.begun))
	case l.n == 0:
		return hostPage{Hosts: []inspect.Host{}, Partial: true}, nil
	}
	return hostPage{Hosts: l.all[:min(n, len(l.all))], Time: l.time, Partial: l.n < n && len(l.all) == l.n}, nil
}

// refresh starts a query unless one runs or the last ranking is recent enough; then looking is nil.
func (l *hostRanking) refresh(n int) (looking chan struct{}, patience time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	patience = hostPatience[1]
	if l.n >= n && l.err == nil {
		if time.Since(l.time) < max(minHostAge, 20*l.took) {
			return nil, 0
		}
		patience = hostPatience[0]
	}
	if l.querying == nil {
		l.querying, l.begun = make(chan struct{}), time.Now()
		go l.query(max(n, l.n)) // a request for few hosts must not shorten the list for others
	}
	return l.querying, patience
}

// query updates the ranking and closes looking.
func (l *hostRanking) query(n int) {
	ctx, cancel := context.WithTimeout(l.done, rankingTimeout)
	defer cancel()
	begin := time.Now()
	var all []inspect.Host
	err := l.view.use(ctx, func(v *inspect.View) (err error) {
		all, _, _, err = collectUpTo(n, v.Hosts(ctx, n))
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.querying)
	if l.querying, l.err = nil, err; err == nil {
		l.all, l.n, l.time, l.took = all, n, time.Now(), time.Since(begin)
	}
}

// hostAnswer returns information on the host in a path, with its first n pending URLs.
func (c *crawl) hostAnswer(r *http.Request, n int) (*hostAnswer, error) {
	ctx, host := r.Context(), inspect.HostOf(r.PathValue("host"))
	x := &hostAnswer{Robots: []statefile.RobotsAnswer{}}
	found := false
	err := c.view.use(ctx, func(v *inspect.View) error {
		hosts, partial, _, err := collectUpTo(1, v.HostsFrom(ctx, host+"/", "", 1))
		if err != nil {
			return err
		}
		x.Partial = partial
		if len(hosts) > 0 && hosts[0].Key == host {
			x.Host, found = hosts[0], true
		}
		if x.Queue, _, _, err = collectUpTo(n, v.Queue(ctx, host, n)); err != nil {
			return err
		}
		if !found && len(x.Queue) == 0 && !x.Partial {
			return &problem{http.StatusNotFound, "The crawl does not know the host",
				"include its port if it has one, as in the list of hosts"}
		}
		for _, scheme := range []string{"https://", "http://"} {
			a, err := v.RobotsAnswer(ctx, scheme+host)
			if errors.Is(err, inspect.ErrReading) {
				x.Partial, err = true, nil
			}
			if err != nil {
				return err
			}
			if a != nil {
				x.Robots = append(x.Robots, *a)
			}
		}
		return nil
	})
	if !found {
		x.Host.Key = host
	}
	return x, err
}

type urlPage struct {
	URLs    []inspect.Known `json:"urls"`
	Next    string          `json:"next,omitempty"`
	Partial bool            `json:"partial,omitempty"` // some URLs are temporarily missing, until they are sorted
}

func getExplanation(c *crawl, r *http.Request) (any, error) {
	return c.explain(r.Context(), r.FormValue("url"))
}

func (c *crawl) explain(ctx context.Context, url string) (x *inspect.Explanation, err error) {
	if u, err := weburl.Parse(url); err != nil || u.Host() == "" {
		return nil, noURL(url)
	}
	err = c.view.use(ctx, func(v *inspect.View) (err error) {
		x, err = v.Explain(ctx, url)
		return err
	})
	return x, err
}

func getURLs(c *crawl, r *http.Request, n int) (any, error) {
	return c.urlsFrom(r.Context(), r.FormValue("prefix"), r.FormValue("after"), n)
}

func (c *crawl) urlsFrom(ctx context.Context, prefix, after string, n int) (p urlPage, err error) {
	var more bool
	err = c.view.use(ctx, func(v *inspect.View) (err error) {
		p.URLs, p.Partial, more, err = collectUpTo(n, v.SeenFrom(ctx, prefix, after, n+1))
		return err
	})
	if more {
		p.Next = p.URLs[n-1].URL
	}
	return p, err
}
