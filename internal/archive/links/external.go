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

// ExternalName is the file in a crawl's folder with the results of checks of external URLs.
const ExternalName = "external.jsonl"

// checkTTL is how long the result of a check is valid.
const checkTTL = 7 * 24 * time.Hour

// A Check is a line of external.jsonl: the result of checking a URL of a host that the crawl has not visited.
type Check struct {
	URL    string `json:"url"`
	Status int    `json:"status,omitempty"` // of the response after redirects; 0 if there is none
	// why there is no response: "dns", "timeout", "loop", ...; "robots" if robots.txt excludes the URL
	Error     string    `json:"error,omitempty"`
	Redirects []string  `json:"redirects,omitempty"`
	Method    string    `json:"method,omitempty"` // of the last request
	Time      time.Time `json:"time"`
}

// readExternal reads the results of earlier checks that are still valid.
func (f *Finder) readExternal(ctx context.Context) error {
	return f.eachLine(ctx, ExternalName, func(text []byte) error {
		var c Check
		if json.Unmarshal(text, &c) == nil && time.Since(c.Time) < checkTTL {
			f.applyCheck(&c)
		}
		return nil
	})
}

// applyCheck applies the result of a check. A URL that robots.txt excludes is not broken.
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

// A Checker configures the check of external links.
type Checker struct {
	Fetch       fetch.Config
	Agent       string        // the product token for robots.txt
	Robots      bool          // obey robots.txt
	Delay       time.Duration // between two requests to a host; robots.txt may increase it up to MaxDelay
	MaxDelay    time.Duration
	MaxURLs     int // URLs per call
	Concurrency int // hosts checked at the same time
}

// A CheckResult has the figures of CheckExternal.
type CheckResult struct {
	Checked, Remaining int64 // URLs; the remaining ones are left for the next call
}

// CheckExternal checks links to hosts that the crawl has not visited, and saves the results in the crawl's folder. URLs
// checked in the last seven days are skipped, so that an interrupted check can be continued.
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

// external returns the URLs to be checked, by host, and the number of further URLs.
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
	// hosts with most URLs first, because they take longest
	slices.SortStableFunc(byHost, func(a, b []string) int { return len(b) - len(a) })
	return byHost, left, err
}

// A checkRun is a call of CheckExternal.
type checkRun struct {
	Checker
	*Finder
	client *fetch.Client
	total  int64
	left   int64

	mu      sync.Mutex // guards the fields below
	out     *bufio.Writer
	done    int64
	failed  error
	origins map[string]robotsResult // by origin, including those of redirects
	next    map[string]time.Time    // by host: time of the next request
}

// errBackoff means that a host asks for a pause. The rest of its URLs are left for the next call.
var errBackoff = errors.New("the host asks to pause requests")

// checkHost checks the URLs of one host.
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

// checkURL requests a URL with HEAD, and with GET if the response is an error, because many servers do not support
// HEAD.
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
		if failure != page.None { // the URL would fail in the same way
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

// isOfURL reports whether a request failed in a way that GET may avoid.
func isOfURL(err error) bool {
	fe, ok := errors.AsType[*fetch.Error](err)
	return ok && (fe.Failure == page.Reset || fe.Failure == page.Malformed)
}

// A robotsResult has the robots.txt of an origin, or the reason why it is missing.
type robotsResult struct {
	rules   *robots.Rules
	failure page.Failure
}

// rules returns the robots.txt rules of a URL's origin.
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
	_ = fetch.Decode(resp, 512<<10) // use the part that could be decoded
	a.rules = robots.FromStatus(status, bytes.Clone(resp.Body), k.Agent)
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.origins) >= maxOrigins {
		clear(k.origins)
	}
	k.origins[origin] = a
	return a.rules, a.failure, nil
}

const maxOrigins = 10_000 // origins whose rules and times are kept in memory

// exchange sends a request when its host's delay has passed.
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

// waitTurn waits until a request to a host is allowed, and reserves the delay after it.
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
