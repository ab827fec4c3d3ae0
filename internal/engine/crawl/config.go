package crawl

import (
	"context"
	"net/http"
	"regexp"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member"
	"kumo/internal/content/cookies"
	"kumo/internal/content/document"
	"kumo/internal/content/login"
	"kumo/internal/content/policy"
	"kumo/internal/content/render"
	"kumo/internal/content/robots"
	"kumo/internal/content/traps"
	"kumo/internal/engine/visit"
	"kumo/internal/state/journal"
	"kumo/internal/state/rank"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
)

// DefaultRedirects is the default limit of consecutive redirects, the same as in browsers.
const DefaultRedirects = 20

// Config configures a crawl and its limits.
type Config struct {
	Depth        int              // hops from a seed; negative: unlimited
	Canon        weburl.Rules     // rules that rewrite URLs before they are looked up in seen
	Embeds       bool             // also fetch images, scripts and other embedded resources
	Include      []*regexp.Regexp // if set, a URL other than a seed must match one of these
	Exclude      []*regexp.Regexp // a URL must match none of these
	IgnoreRobots bool
	Ignore       policy.Directives // directives of pages that are not obeyed
	Usage        policy.Usage      // uses of pages that are obeyed if sites do not allow them
	Sitemaps     policy.Sitemaps   // which sitemaps are read
	MaxSitemap   int64             // maximum size of a sitemap as transferred, in bytes; default 50 MiB
	Tries        int               // requests per URL before it has failed; default 3
	MaxRedirects int               // consecutive; default DefaultRedirects
	PagesPerHost int64             // 0: unlimited
	BytesPerHost int64             // over the wire, without robots.txt; 0: unlimited
	// disable the guard against crawler traps (see package traps) and the limits of domains
	NoTraps bool
	// compare the texts of all pages, so that records have NearDuplicate; a crawl with Parts.Text always does
	NearDuplicates bool
	// patterns, as written in skipped.jsonl, whose URLs are fetched although they bring nothing new
	ReleasedTraps []string
	// limits per registered domain: pages, hosts that are fetched from, names that are looked up; defaults 10,000,000,
	// 100,000 and 200,000; negative: unlimited
	PagesPerDomain, HostsPerDomain, NamesPerDomain int64

	// how long a host that has answered may be unreachable before it is abandoned; default 2m; negative: not at all
	Patience time.Duration
	// how long the crawl waits while it is offline; then Run returns ErrOffline; 0: forever
	OutageWait time.Duration

	Pages int64         // stop after this many pages; 0: unlimited
	Bytes int64         // stop after this many bytes over the wire
	Time  time.Duration // stop after this time

	Recrawl policy.Recrawl // needs a URL database

	Overrides *policy.Overrides // settings of single hosts and URLs; may be nil

	Prefer rank.Preferences // user's rules that raise or lower the importance of URLs

	Render            policy.RenderMode // pages whose scripts are run; needs Parts.Renderer unless "" or never
	RenderVirtualTime time.Duration     // for the timers of rendered pages
	RenderActions     []render.Action   // performed on rendered pages
	RenderScript      string            // JavaScript that is run on rendered pages; the body of an async function
	RenderWait        render.Wait       // what a rendered page waits for
	Shots             []page.ShotKind   // pictures to take of rendered pages
	PrintPDF          bool              // also print them
	Documents         document.Mode     // what is read of documents by Parts.Documents
	PerHost           int               // requests to a host at once for the resources of rendered pages; default 1

	Rate   float64       // requests per second to all hosts together; 0: unlimited
	Grace  time.Duration // how long requests under way may continue after a stop; default 5s
	Commit time.Duration // interval between commits; default 50ms
	// bytes that must stay free on the disk; with less, nothing is fetched; 0: no check
	MinFree           uint64
	DiskCheckInterval time.Duration // default 2s
	Checkpoint        int64         // make a checkpoint after this many bytes of journal; default 64 MiB
	// bytes of links for other nodes above which no new URL is fetched; default 64 MiB
	Outbox    int64
	Links     member.OutboxConfig // how these are sent; its First is ignored
	Claims    bool                // other nodes decide which links are new; needs a Router and a URL database
	Shares    Shares              // memory for pages under way; default 1 GiB
	KeepOpen  bool                // persistent run: do not end when the queues are empty; see Engine.Finish
	DecodeAll bool                // remove the content coding of every body, not only of those read for links
	Now       func() time.Time
}

// BoundsDepth reports whether the depth of any URL is limited.
func (c *Config) BoundsDepth() bool { return c.Depth >= 0 || c.Overrides.LimitsDepth() }

func (c Config) withDefaults() Config {
	c.Tries = orDefault(c.Tries, 3)
	c.PagesPerDomain = orDefault(c.PagesPerDomain, DefaultPagesPerDomain)
	c.HostsPerDomain = orDefault(c.HostsPerDomain, DefaultHostsPerDomain)
	c.NamesPerDomain = orDefault(c.NamesPerDomain, DefaultNamesPerDomain)
	c.Patience = orDefault(c.Patience, 2*time.Minute)
	c.MaxRedirects = orDefault(c.MaxRedirects, DefaultRedirects)
	c.MaxSitemap = orDefault(c.MaxSitemap, 50<<20)
	c.Grace = orDefault(c.Grace, 5*time.Second)
	c.DiskCheckInterval = orDefault(c.DiskCheckInterval, 2*time.Second)
	c.Checkpoint = orDefault(c.Checkpoint, 64<<20)
	c.Outbox = orDefault(c.Outbox, 64<<20)
	c.Commit = orDefault(c.Commit, 50*time.Millisecond)
	c.Shares = orDefault(c.Shares, defaultShares)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Default limits per registered domain. Large wikis and most hosting providers stay below them.
const (
	DefaultPagesPerDomain = 10_000_000
	DefaultHostsPerDomain = traps.DefaultHosts
	DefaultNamesPerDomain = traps.DefaultNames
)

func (c *Config) pageLimits() policy.Limits {
	l := policy.Limits{Pages: c.Pages, PerHost: c.PagesPerHost, Bytes: c.BytesPerHost, Overrides: c.Overrides}
	if !c.NoTraps {
		l.PerDomain = max(c.PagesPerDomain, 0)
	}
	return l
}

func orDefault[T comparable](v, value T) T {
	var zero T
	if v == zero {
		return value
	}
	return v
}

// A Parser parses a response into a page. It sets Page.Cut if its room is too small. Each worker has its own.
type Parser interface {
	Parse(resp *page.Response, pg *page.Page) error
	ParseList(resp *page.Response, pg *page.Page) error // for responses to URLs that were named as sitemaps
}

// Parts are the engine's dependencies.
type Parts struct {
	Deferred   *statefile.Deferred      // list of deferred URLs; may be nil
	Answers    *statefile.RobotsAnswers // answers of robots.txt requests; may be nil
	ScopeSeeds *statefile.ScopeSeeds    // list of the crawl's scope seeds; may be nil
	Seeds      SeedList                 // more seeds than those given to Run; may be nil
	Cookies    *cookies.Jar             // shared with the Fetcher; nil: cookies are not kept
	Logins     *login.Sessions          // may be nil
	NoSecrets  bool                     // the Fetcher has no credentials that only the seeds' servers may receive
	Robots     *robots.Cache
	Scope      *weburl.Scope
	Block      *policy.BlockList // may be nil
	Fetcher    visit.Fetcher
	// returns a parser that reads up to room bytes of a body, and the same amount of links
	NewParser func(room int64) Parser
	// returns a page's main text; nil: not wanted
	Text func(*page.Response, *page.Page) (*page.MainText, error)
	// makes records of a page by rules; nil: no rules
	Fields  func(*page.Response, *page.Page) ([]page.Fields, error)
	Stores  []store.Store
	Journal journal.Journal
	// reports which hosts this node owns; nil: all
	Router Router
	// permits requests to hosts that other crawls of the cluster visit, too; nil: there are none
	Turns Turns
	// reports whether another node owns a host, or its slice, and will have all its data; nil: unknown. It is used for
	// recrawls
	IsElsewhere func(host string) bool
	// connections and rate that crawls of this process share; nil: there is only this crawl
	Resources Resources
	// called with the target of a seed's redirect, at least once, so that other nodes have it in scope; must return
	// quickly; may be nil
	NewScopeSeed func(u weburl.URL)
	// called once a transfer is complete and durable, with the sorted hosts that it brought; not called again after a
	// crash; must return quickly; may be nil
	TransferReceived func(t member.Transfer, hosts []string)
	// called, at least once for each, with URLs of a host, by their items' keys, that were dispatched to this node and
	// are finished: fetched, failed for good, filtered or abandoned. This is durable, and all links of their pages are
	// claimed. Called by one goroutine; must return quickly; may be nil
	Finished func(host string, keys []string)
	// called instead of Finished with each URL that is visited again, or was and is no more
	Revisit func(host, url string, next item.Revisit)
	// called before Finished with pages whose records are in files on this node's disk alone. It returns when other
	// nodes have this list, so that they can have the pages fetched again if the disk is lost. After an error these
	// pages are not reported as finished. nil: records are not replicated
	AtRisk func(ctx context.Context, pages []AtRisk) error
	// called with each durable checkpoint: its position in the journal, the position up to which a run that resumes
	// from it needs the journal, and the lengths of the record files. Until it returns, no file that the checkpoint
	// names is removed or changed. It must return quickly; may be nil
	Checkpointed func(at, relies journal.Position, marks []store.Mark)
	// called with the lengths of record files that the journal has, before any of these files is closed. The files do
	// not change up to these lengths. It must return quickly; may be nil
	Durable func([]store.Mark)
	// one of the stores is a WARC, to which the record of an unchanged page can refer
	Archive bool
	// returns the header fields of requests, to trusted hosts or others; required with Overrides
	Header   func(trusted bool) http.Header
	Ranks    Ranks                  // the order of URLs
	Free     func() (uint64, error) // returns the free bytes on the crawl's disk; used if Config.MinFree is set
	Stats    *stats.Counter
	Renderer Renderer // runs the scripts of pages; nil: none are run
	// Documents reads PDFs, office documents and images; nil: they are not read
	Documents DocumentReader
	Listener  Listener
	Hooks     Hooks
}
