package kumo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"kumo/internal/crawl"
	"kumo/internal/job"
	"kumo/internal/login"
	"kumo/internal/page"
	"kumo/internal/policy"
	"kumo/internal/weburl"
	"kumo/internal/wire"
)

// ErrLimit is what Run returns when a limit was reached and URLs still wait.
var ErrLimit = policy.ErrLimit

// A Page is one URL that was answered.
type Page struct {
	URL       string // as fetched, in canonical form
	From      string // the page that linked to it, "" for a seed
	Depth     int    // hops from a seed
	Status    int    // HTTP status
	Header    http.Header
	Type      string // media type without parameters, in lower case
	Charset   string // that text was read with, "" for other types
	Lang      string // of the first sentences: ISO 639-1 or 639-3, "other"; "" for other types
	Title     string
	Body      []byte   // without transfer and content coding; in the page's own charset
	Links     []string // absolute and canonical, in the order found
	Truncated bool     // the answer ended early, or was longer than the limit
	NoIndex   bool     // the page asks to be shown in no index
	Time      time.Time
	Took      time.Duration
}

// An Error is one URL that was not answered.
type Error struct {
	URL   string
	From  string
	Kind  string // dns, connect, refused, tls, timeout, reset, malformed, private, proxy, unreachable
	Tries int
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("fetch %s: %v", e.URL, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A Crawler crawls. Make it with New, give it callbacks, and Run it once.
type Crawler struct {
	job     job.Job
	err     error // of an option
	onPage  []func(*Page)
	onError []func(*Error)

	mu   sync.Mutex // guards stop
	stop context.CancelFunc
	over bool
}

// New returns a crawler with the manners of kumo crawl: it stays on the seeds' hosts, obeys robots.txt, and waits a
// second between two requests to a host.
func New(opts ...Option) *Crawler {
	c := &Crawler{}
	c.job.Crawl.Depth = -1
	c.job.Frontier.Delay, c.job.Frontier.AddrDelay = time.Second, 250*time.Millisecond
	c.job.Crawl.DecodeAll = true
	for _, opt := range opts {
		opt(c)
	}
	return c
}

// OnPage has f called with every page. Pages of different hosts come at the same time, from different goroutines; what
// f is given is its own to keep.
func (c *Crawler) OnPage(f func(*Page)) { c.onPage = append(c.onPage, f) }

// OnError has f called with every URL that failed for good, in the same way.
func (c *Crawler) OnError(f func(*Error)) { c.onError = append(c.onError, f) }

// Run crawls from seeds until nothing waits. It returns nil then, ErrLimit when a limit was reached, and the context's
// error when that ended or Stop was called. Requests under way may take up to five seconds more.
func (c *Crawler) Run(ctx context.Context, seeds ...string) error {
	if c.err != nil {
		return c.err
	}
	ctx, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer c.Stop()
	c.job.Seeds = seeds
	c.job.Listener = crawl.Listener{Visited: c.visited}
	run, err := wire.Open(ctx, &c.job)
	if err != nil {
		return err
	}
	_, err = run.Run(ctx)
	return errors.Join(err, run.Close())
}

func (c *Crawler) begin(ctx context.Context) (context.Context, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		return nil, errors.New("kumo: a Crawler runs once")
	}
	ctx, c.stop = context.WithCancel(ctx)
	if c.over {
		c.stop()
	}
	return ctx, nil
}

// Stop ends Run, now or when it is called.
func (c *Crawler) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.stop != nil {
		c.stop()
	}
}

func (c *Crawler) visited(r *page.Record) {
	if r.Failure != page.None {
		e := &Error{URL: r.URL, From: r.From, Kind: string(r.Failure), Tries: r.Tries, Err: errors.New(r.Detail)}
		for _, f := range c.onError {
			f(e)
		}
		return
	}
	if len(c.onPage) == 0 {
		return
	}
	p := pageOf(r)
	for _, f := range c.onPage {
		f(p)
	}
}

// pageOf copies what the engine will use again.
func pageOf(r *page.Record) *Page {
	p := &Page{URL: r.URL, From: r.From, Depth: r.Depth, Status: r.Response.Status, Header: r.Response.Header.Clone(),
		Type: r.Page.Type, Charset: r.Page.Charset, Lang: r.Page.Lang, Title: strings.Clone(r.Page.Title),
		Body: append([]byte(nil), r.Response.Body...), Truncated: r.Response.Truncated != page.Whole, NoIndex: r.NoIndex,
		Time: r.Time, Took: r.Took}
	for _, l := range r.Page.Links {
		p.Links = append(p.Links, l.URL)
	}
	return p
}

// An Option sets something that New's defaults do not suit.
type Option func(*Crawler)

// Delay is the time from the end of an answer to the next request to that host; one second unless set.
func Delay(d time.Duration) Option { return func(c *Crawler) { c.job.Frontier.Delay = d } }

// Concurrency is how many hosts are worked on at once; 64 unless set.
func Concurrency(hosts int) Option { return func(c *Crawler) { c.job.Frontier.Hosts = hosts } }

// Depth is how many hops from a seed links are followed; 0 is the seeds only. Without limit unless set.
func Depth(hops int) Option { return func(c *Crawler) { c.job.Crawl.Depth = hops } }

// Limit stops the crawl after so many pages.
func Limit(pages int64) Option { return func(c *Crawler) { c.job.Crawl.Pages = pages } }

// Scope says which URLs belong to the crawl, seen from its seeds: "page", "prefix", "host" (unless set), "domain" or
// "any".
func Scope(name string) Option {
	return func(c *Crawler) {
		mode, err := weburl.ParseMode(name)
		c.job.Scope, c.err = mode, errors.Join(c.err, err)
	}
}

// Canon has URLs rewritten before they are known, so that spellings of one page are fetched once, by a list of rules:
// "tracking" and "session" drop query parameters that say where a visitor came from or who he is, "sort" sorts the
// query, "index" drops "index.html" and the like, "www" drops that from hosts. On some sites they lose pages; without
// Canon no rule holds.
func Canon(rules string) Option {
	return func(c *Crawler) {
		set, err := weburl.ParseRules(rules)
		c.job.Crawl.Canon, c.err = set, errors.Join(c.err, err)
	}
}

// Include fetches only URLs that match one of the expressions, besides the seeds.
func Include(res ...*regexp.Regexp) Option {
	return func(c *Crawler) { c.job.Crawl.Include = append(c.job.Crawl.Include, res...) }
}

// Exclude fetches no URL that matches one of the expressions.
func Exclude(res ...*regexp.Regexp) Option {
	return func(c *Crawler) { c.job.Crawl.Exclude = append(c.job.Crawl.Exclude, res...) }
}

// Embeds fetches images, scripts and other parts of pages, too.
func Embeds() Option { return func(c *Crawler) { c.job.Crawl.Embeds = true } }

// NoCookies keeps none of the cookies that servers set, and sends none back.
func NoCookies() Option { return func(c *Crawler) { c.job.NoCookies = true } }

// Login logs in before anything is fetched, by a file as kumo crawl --login has it. If that fails, Run does.
func Login(file string) Option {
	return func(c *Crawler) {
		logins, err := login.Load(file)
		c.job.Logins, c.err = logins, errors.Join(c.err, err)
	}
}

// Contact is a URL or mail address where site owners can reach you; it becomes part of the user agent.
func Contact(contact string) Option { return func(c *Crawler) { c.job.Contact = contact } }

// UserAgent is the whole User-Agent.
func UserAgent(agent string) Option { return func(c *Crawler) { c.job.Fetch.UserAgent = agent } }

// Timeout is how long an answer may bring nothing; 30 seconds unless set.
func Timeout(d time.Duration) Option { return func(c *Crawler) { c.job.Fetch.Timeout = d } }

// AllowPrivate visits private and loopback addresses also where no seed names them.
func AllowPrivate() Option { return func(c *Crawler) { c.job.Fetch.AllowPrivate = true } }

// IgnoreRobots fetches what robots.txt forbids. Do that on your own sites only.
func IgnoreRobots() Option { return func(c *Crawler) { c.job.Crawl.IgnoreRobots = true } }

// Ignore does not obey what pages ask of robots: "nofollow", "rel-nofollow", "noindex", "noarchive",
// "unavailable-after"; or "all".
func Ignore(directives ...string) Option {
	return func(c *Crawler) {
		d, err := policy.ParseDirectives(directives)
		c.job.Crawl.Ignore, c.err = c.job.Crawl.Ignore|d, errors.Join(c.err, err)
	}
}

// Sitemaps says which sitemaps are read: those that robots.txt names ("named", unless set), /sitemap.xml, too, where it
// names none ("guess"), or none ("ignore").
func Sitemaps(which string) Option {
	return func(c *Crawler) {
		s, err := policy.ParseSitemaps(which)
		c.job.Crawl.Sitemaps, c.err = s, errors.Join(c.err, err)
	}
}

// Out keeps the crawl in a folder, as kumo crawl does: WARC, pages.jsonl, logs, and the state from which the same
// program continues. Without it nothing is written.
func Out(dir string) Option { return func(c *Crawler) { c.job.Dir = dir } }

// Tries is how many visits a URL gets before it has failed; three unless set.
func Tries(n int) Option { return func(c *Crawler) { c.job.Crawl.Tries = n } }
