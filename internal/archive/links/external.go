package links

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"kumo/internal/base/extsort"
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/robots"
)

// ExternalName is the file in a crawl's folder that keeps what checks of other sites' URLs have found.
const ExternalName = "external.jsonl"

// checkTTL is how long what a check has found is believed.
const checkTTL = 7 * 24 * time.Hour

// A Check is a line of external.jsonl: what a URL of a site that the crawl has not visited has answered.
type Check struct {
	URL       string    `json:"url"`
	Status    int       `json:"status,omitempty"` // of the answer at the end of redirects; 0 if none came
	Error     string    `json:"error,omitempty"`  // why there is none: "dns", "timeout", "loop", ...; "robots" forbid it
	Redirects []string  `json:"redirects,omitempty"`
	Method    string    `json:"method,omitempty"` // that the last answer came to
	Time      time.Time `json:"time"`
}

// readExternal reads what earlier checks have found, as far as it is not too old.
func (f *Finder) readExternal(ctx context.Context) error {
	return f.eachLine(ctx, ExternalName, func(text []byte) error {
		var c Check
		if json.Unmarshal(text, &c) == nil && time.Since(c.Time) < checkTTL {
			f.applyCheck(&c)
		}
		return nil
	})
}

// applyCheck takes in what a check has found. That robots.txt forbids a look is nothing against a URL.
func (f *Finder) applyCheck(c *Check) {
	f.known.checks[f.known.hash(c.URL)] = true
	if c.Error == "robots" || c.Error == "" && c.Status < http.StatusMultipleChoices && len(c.Redirects) == 0 {
		return
	}
	at := c.URL
	for _, next := range c.Redirects {
		if _, known := f.known.at(at); !known {
			f.known.set(at, outcome{status: http.StatusFound, next: next})
		}
		at = next
	}
	if c.Error != "loop" && (c.Error != "" || c.Status >= http.StatusMultipleChoices) {
		f.known.set(at, outcome{status: c.Status, reason: c.Error})
	}
}

// A Checker asks other sites whether what a crawl's pages link to is there.
type Checker struct {
	Fetch       fetch.Config
	Agent       string        // the product token for robots.txt
	Robots      bool          // are obeyed
	Delay       time.Duration // between two requests to a host; its robots.txt may ask for up to MaxDelay
	MaxDelay    time.Duration
	MaxURLs     int // URLs in one go
	Concurrency int // asked at once
}

// A Checked says what CheckExternal did.
type CheckResult struct {
	Checked, Remaining int64 // URLs; those left are for the next time
}

// CheckExternal asks for what the crawl's pages link to on hosts that it has not visited, and keeps what came of it in
// the crawl's folder. What was checked in the last seven days is not asked for again, so that a check which was ended
// goes on.
func (f *Finder) CheckExternal(ctx context.Context, c Checker) (done CheckResult, err error) {
	client, err := fetch.New(c.Fetch)
	if err != nil {
		return done, err
	}
	defer client.Close()
	byHost, left, err := f.external(ctx, c.MaxURLs)
	if err != nil {
		return done, err
	}
	out, err := os.OpenFile(f.path(ExternalName), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	k := &checkRun{Checker: c, Finder: f, client: client, out: bufio.NewWriter(out), left: left,
		origins: map[string]robotsResult{}, next: map[string]time.Time{}}
	for _, urls := range byHost {
		k.total += int64(len(urls))
	}
	hosts := make(chan []string)
	var g sync.WaitGroup
	for range max(c.Concurrency, 1) {
		g.Go(func() {
			for urls := range hosts {
				k.checkHost(ctx, urls)
			}
		})
	}
	for _, urls := range byHost {
		select {
		case hosts <- urls:
		case <-ctx.Done():
		}
	}
	close(hosts)
	g.Wait()
	done = CheckResult{k.done, k.left + k.total - k.done}
	return done, errors.Join(k.failed, k.out.Flush(), context.Cause(ctx))
}

// external are the URLs to be checked, by host, and how many more there are.
func (f *Finder) external(ctx context.Context, most int) (byHost [][]string, left int64, err error) {
	found := extsort.New(extsort.Config{Disk: f.cfg.Disk, Dir: filepath.Join(f.temp, "external"), Memory: 64 << 20})
	defer func() { err = errors.Join(err, found.Close()) }()
	err = f.eachPage(ctx, func(p *pageLinks) error {
		for l := range p.links() {
			host := item.HostOf(l.raw)
			if !strings.HasPrefix(l.raw, "http") || f.known.hosts[f.known.hash(host)] {
				continue
			}
			if err := found.Add(0, []byte(host+" "+l.raw), nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	n, last := 0, ""
	err = found.EachKey(ctx, func(key, _ []byte) error {
		host, url, _ := strings.Cut(string(key), " ")
		switch u, err := weburl.Parse(url); {
		case err != nil || !u.IsHTTP(), f.known.checks[f.known.hash(url)]:
			return nil
		case n == most:
			left++
			return nil
		}
		if n++; host != last {
			byHost = append(byHost, nil)
		}
		last = host
		byHost[len(byHost)-1] = append(byHost[len(byHost)-1], url)
		return nil
	})
	slices.SortStableFunc(byHost, func(a, b []string) int { return len(b) - len(a) }) // which take longest first
	return byHost, left, err
}

// A checking is one go of checks.
type checkRun struct {
	Checker
	*Finder
	client *fetch.Client
	total  int64
	left   int64

	mu      sync.Mutex // guards below
	out     *bufio.Writer
	done    int64
	failed  error
	origins map[string]robotsResult // by origin, of redirects' too
	next    map[string]time.Time    // by host: when it may be asked again
}

// errBackoff is a host that asks to be left alone: the rest of its URLs wait for the next time.
var errBackoff = errors.New("the host asks to be left alone")

// checkHost checks URLs of one host.
func (k *checkRun) checkHost(ctx context.Context, urls []string) {
	resp := new(page.Response)
	for _, url := range urls {
		c, err := k.checkURL(ctx, url, resp)
		if err != nil {
			return
		}
		k.mu.Lock()
		k.applyCheck(c)
		k.failed = errors.Join(k.failed, jsonLine(k.out, c))
		if k.done++; k.done%64 == 0 {
			k.failed = errors.Join(k.failed, k.out.Flush())
		}
		k.cfg.Progress(Progress{"other sites", k.done, k.total})
		k.mu.Unlock()
	}
}

// checkURL asks for a URL: by HEAD, and where that is answered with an error by GET, as many servers know no HEAD.
func (k *checkRun) checkURL(ctx context.Context, url string, resp *page.Response) (*Check, error) {
	c := &Check{URL: url, Time: time.Now().UTC().Truncate(time.Millisecond)}
	for at := url; ; {
		u, err := weburl.Parse(at)
		if err != nil || !u.IsHTTP() {
			c.Error = "scheme"
			return c, nil
		}
		rules, failure, err := k.rules(ctx, u, resp)
		if err != nil {
			return nil, err
		}
		if failure != page.None { // so would the URL
			c.Error = string(failure)
			return c, nil
		}
		if ok, _ := rules.Allowed(u.RequestURI()); !ok {
			c.Error = string(page.NoRobots)
			return c, nil
		}
		c.Method = http.MethodHead
		err = k.exchange(ctx, u, rules, fetch.Request{URL: at, Head: true}, resp)
		if err == nil && resp.Status >= http.StatusBadRequest || isOfURL(err) {
			c.Method = http.MethodGet
			err = k.exchange(ctx, u, rules, fetch.Request{URL: at, MaxBody: 64 << 10}, resp)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if fe, ok := errors.AsType[*fetch.Error](err); ok {
			c.Error = string(fe.Failure)
			return c, nil
		}
		if c.Status = resp.Status; c.Status == http.StatusTooManyRequests || c.Status == http.StatusServiceUnavailable {
			return nil, errBackoff
		}
		to := resp.Header.Get("Location")
		v, err := u.Resolve(to)
		if c.Status/100 != 3 || to == "" || err != nil {
			return c, nil
		}
		at = v.Canonical().String()
		back := at == url || slices.Contains(c.Redirects, at)
		c.Redirects = append(c.Redirects, at)
		if back || len(c.Redirects) > maxRedirects {
			c.Status, c.Error = 0, "loop"
			if !back {
				c.Error = "redirects"
			}
			return c, nil
		}
	}
}

const maxRedirects = 10

// isOfURL reports whether an exchange failed in a way that may be the method's fault.
func isOfURL(err error) bool {
	fe, ok := errors.AsType[*fetch.Error](err)
	return ok && (fe.Failure == page.Reset || fe.Failure == page.Malformed)
}

// An answer is what an origin said to /robots.txt, or why it said nothing.
type robotsResult struct {
	rules   *robots.Rules
	failure page.Failure
}

// rules are those of a URL's origin.
func (k *checkRun) rules(ctx context.Context, u weburl.URL, resp *page.Response) (*robots.Rules, page.Failure, error) {
	if !k.Robots {
		return &robots.Rules{}, page.None, nil
	}
	origin := u.Origin()
	k.mu.Lock()
	a, known := k.origins[origin]
	k.mu.Unlock()
	if known {
		return a.rules, a.failure, nil
	}
	at, err := weburl.Parse(origin + "/robots.txt")
	if err != nil {
		return nil, page.None, err
	}
	status := 0
	for hops := 0; hops <= robots.MaxRedirects; hops++ {
		err := k.exchange(ctx, at, nil, fetch.Request{URL: at.String(), MaxBody: 512 << 10}, resp)
		if ctx.Err() != nil {
			return nil, page.None, context.Cause(ctx)
		}
		if status = 0; err != nil {
			a.failure = page.NoRobots
			if fe, ok := errors.AsType[*fetch.Error](err); ok {
				a.failure = fe.Failure
			}
			break
		}
		status = resp.Status
		to, err := at.Resolve(resp.Header.Get("Location"))
		if status/100 != 3 || err != nil || !to.IsHTTP() {
			break
		}
		at = to.Canonical()
	}
	_ = fetch.Decode(resp, 512<<10) // what there is of it counts
	a.rules = robots.FromStatus(status, bytes.Clone(resp.Body), k.Agent)
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.origins) >= maxOrigins {
		clear(k.origins)
	}
	k.origins[origin] = a
	return a.rules, a.failure, nil
}

const maxOrigins = 10_000 // whose rules and times are kept

// exchange makes an exchange when its host's turn has come.
func (k *checkRun) exchange(ctx context.Context, u weburl.URL, rules *robots.Rules, req fetch.Request,
	resp *page.Response) error {
	delay := k.Delay
	if rules != nil {
		if asked, ok := rules.Delay(); ok {
			delay = max(delay, min(asked, k.MaxDelay))
		}
	}
	if err := k.waitTurn(ctx, u.Host(), delay); err != nil {
		return err
	}
	return k.client.Get(ctx, req, resp)
}

// waitTurn waits for a host's turn, and keeps the next for so long.
func (k *checkRun) waitTurn(ctx context.Context, host string, delay time.Duration) error {
	k.mu.Lock()
	now := time.Now()
	at := k.next[host]
	if at.Before(now) {
		at = now
	}
	if len(k.next) >= maxOrigins {
		for host, t := range k.next {
			if t.Before(now) {
				delete(k.next, host)
			}
		}
	}
	k.next[host] = at.Add(delay)
	k.mu.Unlock()
	if wait := at.Sub(now); wait > 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
	return nil
}
