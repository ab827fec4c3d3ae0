package ui

import (
	"context"
	"net/http"
	"sync"
	"time"

	"kumo/internal/inspect"
	"kumo/internal/statefile"
)

// A hostPage is some hosts: lists go on where they ended.
type hostPage struct {
	Hosts []inspect.Host `json:"hosts"`
	Next  string         `json:"next,omitempty"` // goes on behind these as "after"; missing: these are the last
}

type hostAnswer struct {
	Host   inspect.Host             `json:"host"`
	Robots []statefile.RobotsAnswer `json:"robots"` // as it was read last, of each scheme
	Queue  []inspect.Item           `json:"queue"`  // the first that wait
}

func (s *Server) giveHosts(r *http.Request) (any, error) {
	c, err := s.of(r)
	if err != nil {
		return nil, err
	}
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	switch by := r.FormValue("by"); {
	case by == "waiting" && r.FormValue("prefix")+r.FormValue("after") == "":
		hosts, err := c.busiest(r.Context(), n)
		return hostPage{Hosts: hosts}, err
	case by != "":
		return nil, badRequest("by is %q: only \"waiting\" is known, and goes without prefix and after", by)
	}
	return c.hostsFrom(r.Context(), r.FormValue("prefix"), r.FormValue("after"), n)
}

// hostsFrom are the hosts whose names begin with prefix and come after another.
func (c *crawl) hostsFrom(ctx context.Context, prefix, after string, n int) (p hostPage, err error) {
	p.Hosts = []inspect.Host{}
	err = c.use(ctx, func(v *inspect.View) error {
		for h, err := range v.HostsFrom(ctx, prefix, after, n+1) {
			if err != nil {
				return err
			}
			p.Hosts = append(p.Hosts, h)
		}
		return nil
	})
	if len(p.Hosts) > n {
		p.Hosts = p.Hosts[:n]
		p.Next = p.Hosts[n-1].Key
	}
	return p, err
}

// A hostList is the hosts where most waited when somebody looked last. A crawl of millions of hosts looks through them
// for it, so it is not asked too often.
type hostList struct {
	mu   sync.Mutex // held by who looks
	all  []inspect.Host
	n    int // that were asked for
	time time.Time
	took time.Duration
}

const leastHostAge = 2 * time.Second

// busiest are the first n.
func (c *crawl) busiest(ctx context.Context, n int) ([]inspect.Host, error) {
	l := &c.hosts
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n >= n && time.Since(l.time) < max(leastHostAge, 20*l.took) {
		return l.all[:min(n, len(l.all))], nil
	}
	begin, all := time.Now(), []inspect.Host{}
	err := c.use(ctx, func(v *inspect.View) error {
		for h, err := range v.Hosts(ctx, n) {
			if err != nil {
				return err
			}
			all = append(all, h)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.all, l.n, l.time, l.took = all, n, time.Now(), time.Since(begin)
	return all, nil
}

func (s *Server) giveHost(r *http.Request) (any, error) {
	c, err := s.of(r)
	if err != nil {
		return nil, err
	}
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	return c.hostAnswer(r.Context(), r.PathValue("host"), n)
}

func (c *crawl) hostAnswer(ctx context.Context, host string, n int) (*hostAnswer, error) {
	x := &hostAnswer{Robots: []statefile.RobotsAnswer{}, Queue: []inspect.Item{}}
	found := false
	err := c.use(ctx, func(v *inspect.View) error {
		for h, err := range v.HostsFrom(ctx, host+"/", "", 1) {
			if err != nil {
				return err
			}
			if h.Key == host {
				x.Host, found = h, true
			}
		}
		for it, err := range v.Queue(ctx, host, n) {
			if err != nil {
				return err
			}
			x.Queue = append(x.Queue, it)
		}
		if !found && len(x.Queue) == 0 {
			return &problem{http.StatusNotFound, "The crawl does not know the host", "name it with its port if it has one, as the list of hosts does"}
		}
		for _, scheme := range []string{"https://", "http://"} {
			a, err := v.RobotsAnswer(ctx, scheme+host)
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
