package crawl

import (
	"context"
	"net/http"
	"regexp"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member"
	"kumo/internal/content/cookies"
	"kumo/internal/content/login"
	"kumo/internal/content/policy"
	"kumo/internal/content/robots"
	"kumo/internal/content/traps"
	"kumo/internal/engine/visit"
	"kumo/internal/state/journal"
	"kumo/internal/state/rank"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
)

// DefaultRedirects is how many redirects in a row are followed, as many as browsers do.
const DefaultRedirects = 20

// Config sets what is crawled, and how far.
type Config struct {
	Depth        int              // hops from a seed; negative: without limit
	Canon        weburl.Rules     // by which URLs are rewritten before they are known
	Embeds       bool             // fetch images, scripts and the like, too
	Include      []*regexp.Regexp // a URL must match one of these, if there are any; seeds need not
	Exclude      []*regexp.Regexp // and none of these
	IgnoreRobots bool
	Ignore       policy.Directives // that pages have, and that are not obeyed
	Sitemaps     policy.Sitemaps   // which are read
	MaxSitemap   int64             // bytes of a sitemap's body, as transferred; 50 MiB
	Tries        int               // visits that a URL gets before it has failed; 3
	MaxRedirects int               // in a row; DefaultRedirects
	PagesPerHost int64             // 0: without limit
	BytesPerHost int64             // over the wire, without robots.txt; 0: without limit
	NoTraps      bool              // fetch also what brings nothing new, and of a domain without limit: see package traps
	// patterns of URLs that are fetched although they bring nothing new, as skipped.jsonl has them
	ReleasedTraps []string
	// ofPage a registered domain: pages; hosts from which anything is fetched; names that are looked up. 10,000,000, 100,000
	// and 200,000; negative: without limit
	PagesPerDomain, HostsPerDomain, NamesPerDomain int64

	// how long a host that has answered may be out of reach until it is given up; 2m, negative: no time
	Patience time.Duration
	// how long the crawl waits when it is cut off from the web; then Run ends with ErrOffline. 0: without end
	OutageWait time.Duration

	Pages int64         // stop after so many pages; 0: without limit
	Bytes int64         // stop after so many bytes over the wire
	Time  time.Duration // stop after so long

	Recrawl policy.Recrawl // needs a URL database

	Overrides *policy.Overrides // what hosts and URLs have in place of all this; nil: nothing

	Prefer rank.Preferences // which URLs go before others of their importance, or behind them

	Rate              float64             // requests a second, all hosts together; 0: without limit
	Grace             time.Duration       // how long requests under way may go on after a stop; 5s
	Commit            time.Duration       // between two commits; 50ms
	MinFree           uint64              // bytes that the disk must have left; with less nothing is fetched. 0: whatever it has
	DiskCheckInterval time.Duration       // how often is looked; 2s
	Checkpoint        int64               // bytes of journal after which the next checkpoint is made; 64 MiB
	Outbox            int64               // bytes of links for other nodes, beyond which no new URL is taken; 64 MiB
	Links             member.OutboxConfig // how they go there; its First is not used
	Claims            bool                // other nodes say which links are new; needs a Router and a URL database
	Shares            Shares              // memory for pages under way; 1 GiB
	KeepOpen          bool                // do not end when nothing waits; see Engine.Finish
	DecodeAll         bool                // take the content coding off every body, not only off those that are read for links
	Now               func() time.Time
}

// BoundsDepth reports whether any URL may lie too deep.
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

// What a registered domain may have unless it is set: more than large wikis, and most providers, have.
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

// A Parser reads a response into a page, and says by Page.Cut if its room is too small. Each worker has its own.
type Parser interface {
	Parse(resp *page.Response, pg *page.Page) error
	ParseList(resp *page.Response, pg *page.Page) error // of what was named as a sitemap
}

// Parts are what the engine works with.
type Parts struct {
	Deferred   *statefile.Deferred      // may be nil: what was set aside is not written down then
	Answers    *statefile.RobotsAnswers // may be nil, likewise: what robots.txt files said
	ScopeSeeds *statefile.ScopeSeeds    // may be nil, likewise: what the crawl's seeds are
	Seeds      SeedList                 // may be nil: more seeds than those that Run is given
	Cookies    *cookies.Jar             // may be nil: what servers set is not kept. The Fetcher has it, too
	Logins     *login.Sessions          // may be nil
	NoSecrets  bool                     // the Fetcher has nothing that is for the seeds' servers alone
	Robots     *robots.Cache
	Scope      *weburl.Scope
	Block      *policy.BlockList // may be nil
	Fetcher    visit.Fetcher
	// which reads up to so much of a body, and has room for as much of its links
	NewParser func(room int64) Parser
	// gives a page's main text; nil if nobody asked for texts
	Text func(*page.Response, *page.Page) (*page.MainText, error)
	// makes records of a page by rules; nil without rules
	Fields  func(*page.Response, *page.Page) ([]page.Fields, error)
	Stores  []store.Store
	Journal journal.Journal
	// whose hosts are, where several nodes share a crawl; nil: all are this node's
	Router Router
	// is told what seeds redirect to, so that other nodes have it in scope: once or more often, and must be quick; may be
	// nil
	NewScopeSeed func(u weburl.URL)
	// is told which hosts have come with a transfer, sorted, when that has come whole, durably: once, but not again after
	// a crash. It must be quick; may be nil
	TransferReceived func(t member.Transfer, hosts []string)
	// is told which URLs of a host, by their items' keys, are done that were dispatched to this node: fetched, failed for
	// good, left out or given up, durably, with all links that they have brought claimed; once or more often, by one
	// goroutine. It must be quick; may be nil
	Finished func(host string, keys []string)
	// is told, before they are Finished, of pages whose records lie in files on this node's disk alone, and returns when
	// others know that, too, so that they can be fetched again if the disk is lost; after an error they are not Finished.
	// nil: records go nowhere else
	AtRisk func(ctx context.Context, pages []AtRisk) error
	// is told of each checkpoint that is durable: up to where the journal is in it, up to where it must be there for who
	// goes on from it, and how long the record files were. Until it returns, files of the state may come, but none that
	// the checkpoint names goes or changes. It must be quick; may be nil
	Checkpointed func(at, relies journal.Position, marks []store.Mark)
	// is told the lengths of record files that the journal has, before any of them is closed for it: up to there they stay
	// as they are. It must be quick; may be nil
	Durable func([]store.Mark)
	// one of the stores is a WARC, to which an unchanged page's record can refer
	Archive bool
	// the header fields that requests are sent with, to hosts that are trusted or not; needed where there are overrides
	Header   func(trusted bool) http.Header
	Ranks    Ranks                  // which URLs go first
	Free     func() (uint64, error) // room on the crawl's disk; asked if Config.MinFree is set
	Stats    *stats.Counter
	Listener Listener
	Hooks    Hooks
}
