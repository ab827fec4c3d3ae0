package kumo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/login"
	"kumo/internal/content/policy"
	"kumo/internal/engine/crawl"
	"kumo/internal/engine/seeds"
	"kumo/internal/state/rank"
)

// An Option sets something that New's defaults do not suit. What is wrong with one Run says, by its name.
type Option func(*Crawler)

// fault notes what is wrong with an option, if anything is.
func (c *Crawler) fault(option string, err error) {
	if err != nil {
		c.faults = append(c.faults, fmt.Errorf("kumo.%s: %w", option, toOptionError(err)))
	}
}

// require notes that an option's value is none.
func (c *Crawler) require(ok bool, option, want string, value any) {
	if !ok {
		c.faults = append(c.faults, fmt.Errorf("kumo.%s(%v): %s", option, value, want))
	}
}

// markGiven notes that an option has a setting which a crawl's folder keeps.
func (c *Crawler) markGiven(key string) { c.set[key] = true }

const (
	notNegative = "it cannot be negative"
	positive    = "it must be more than nothing"
	noFunction  = "a function is wanted"
)

// What is fetched.

// Scope says which URLs belong to the crawl, seen from its seeds: "page", "prefix", "host" (unless set), "domain" or
// "any".
func Scope(name string) Option {
	return func(c *Crawler) {
		mode, err := weburl.ParseMode(name)
		c.fault("Scope", err)
		c.markGiven("scope")
		c.job.Scope = mode
	}
}

// Depth is how many hops from a seed links are followed; 0 is the seeds only. Negative: without limit, as unless set.
func Depth(hops int) Option {
	return func(c *Crawler) {
		c.markGiven("depth")
		c.job.Crawl.Depth = max(hops, -1)
	}
}

// Include fetches only URLs that match one of the expressions, besides the seeds.
func Include(res ...*regexp.Regexp) Option {
	return func(c *Crawler) {
		c.require(!slices.Contains(res, nil), "Include", "an expression is nil", "nil")
		c.markGiven("include")
		c.job.Crawl.Include = append(c.job.Crawl.Include, res...)
	}
}

// Exclude fetches no URL that matches one of the expressions.
func Exclude(res ...*regexp.Regexp) Option {
	return func(c *Crawler) {
		c.require(!slices.Contains(res, nil), "Exclude", "an expression is nil", "nil")
		c.markGiven("exclude")
		c.job.Crawl.Exclude = append(c.job.Crawl.Exclude, res...)
	}
}

// Canon has URLs rewritten before they are known, so that spellings of one page are fetched once, by a list of rules:
// "tracking" and "session" drop query parameters that say where a visitor came from or who he is, "sort" sorts the
// query, "index" drops "index.html" and the like, "www" drops that from hosts. On some sites they lose pages; without
// Canon no rule holds.
func Canon(rules string) Option {
	return func(c *Crawler) {
		set, err := weburl.ParseRules(rules)
		c.fault("Canon", err)
		c.markGiven("canon")
		c.job.Crawl.Canon = set
	}
}

// Embeds fetches images, scripts and other parts of pages, too, wherever they lie.
func Embeds() Option {
	return func(c *Crawler) {
		c.markGiven("embeds")
		c.job.Crawl.Embeds = true
	}
}

// Sitemaps says which sitemaps are read: those that robots.txt names ("named", unless set), /sitemap.xml, too, where it
// names none ("guess"), or none ("ignore").
func Sitemaps(which string) Option {
	return func(c *Crawler) {
		s, err := policy.ParseSitemaps(which)
		c.fault("Sitemaps", err)
		c.markGiven("sitemaps")
		c.job.Crawl.Sitemaps = s
	}
}

// Order says which of the URLs that wait at a host goes first: the least deep ("depth", unless set), the most important
// by the links that were found ("pagerank", "opic", "indegree"), the first found ("breadth") or any ("random").
func Order(name string) Option {
	return func(c *Crawler) {
		c.require(slices.Contains(job.Orders(), name), "Order", "it is one of "+strings.Join(job.Orders(), ", "),
			fmt.Sprintf("%q", name))
		c.markGiven(job.OrderKey)
		c.job.Order = name
	}
}

// Prefer takes URLs that match for weight times as important, or less so with a weight below 1. Of several that match
// all count.
func Prefer(urls *regexp.Regexp, weight float64) Option {
	return func(c *Crawler) {
		if urls == nil {
			c.fault("Prefer", errors.New("the expression is nil"))
			return
		}
		p, err := rank.ParsePreference(fmt.Sprintf("%s=%v", urls, weight))
		c.fault("Prefer", err)
		c.job.Crawl.Prefer = append(c.job.Crawl.Prefer, p...)
	}
}

// Limits. Where one is reached Run ends with ErrLimit.

// Limit stops the crawl after so many pages, of all runs with Out together; 0: without limit, as unless set.
func Limit(pages int64) Option {
	return func(c *Crawler) {
		c.require(pages >= 0, "Limit", notNegative, pages)
		c.job.Crawl.Pages = pages
	}
}

// SizeLimit stops the crawl after so many bytes over the wire, of all runs with Out together; 0: without limit, as
// unless set.
func SizeLimit(bytes int64) Option {
	return func(c *Crawler) {
		c.require(bytes >= 0, "SizeLimit", notNegative, bytes)
		c.job.Crawl.Bytes = bytes
	}
}

// TimeLimit stops the run after so long; 0: without limit, as unless set.
func TimeLimit(d time.Duration) Option {
	return func(c *Crawler) {
		c.require(d >= 0, "TimeLimit", notNegative, d)
		c.job.Crawl.Time = d
	}
}

// NoTraps fetches also what is like a trap: URLs whose pattern brings nothing new, and more of a registered domain than
// PagesPerDomain, HostsPerDomain and NamesPerDomain let in. Page.NearDuplicate is "" then.
func NoTraps() Option {
	return func(c *Crawler) {
		c.markGiven(job.NoTrapsKey)
		c.job.Crawl.NoTraps = true
	}
}

// PagesPerHost is how many pages of a host are fetched; what is left then is left out, and no error. 0: without limit,
// as unless set.
func PagesPerHost(pages int64) Option {
	return func(c *Crawler) {
		c.require(pages >= 0, "PagesPerHost", notNegative, pages)
		c.markGiven("max-pages-per-host")
		c.job.Crawl.PagesPerHost = pages
	}
}

// BytesPerHost bounds the bytes that a host sends over the wire, robots.txt apart: once it has sent so many, the rest of
// its URLs is excluded, which is no error. 0: no limit, the default. The responses in flight still count, so a host may
// exceed it by one response a connection.
func BytesPerHost(bytes int64) Option {
	return func(c *Crawler) {
		c.require(bytes >= 0, "BytesPerHost", notNegative, bytes)
		c.markGiven(crawl.RuleBytesPerHost)
		c.job.Crawl.BytesPerHost = bytes
	}
}

// PagesPerDomain is how many pages of a registered domain are fetched, as PagesPerHost; 10,000,000 unless set.
func PagesPerDomain(pages int64) Option {
	return perDomain("PagesPerDomain", crawl.RulePagesPerDomain, pages, func(c *crawl.Config) *int64 {
		return &c.PagesPerDomain
	})
}

// HostsPerDomain is from how many hosts of a registered domain anything is fetched, those of seeds apart. 0: without
// limit; 100,000 unless set.
func HostsPerDomain(hosts int64) Option {
	return perDomain("HostsPerDomain", crawl.RuleHostsPerDomain, hosts, func(c *crawl.Config) *int64 {
		return &c.HostsPerDomain
	})
}

// NamesPerDomain is how many names of a registered domain are looked up, whether they are known or not, those of seeds
// apart. 0: without limit; 200,000 unless set.
func NamesPerDomain(names int64) Option {
	return perDomain("NamesPerDomain", crawl.RuleNamesPerDomain, names, func(c *crawl.Config) *int64 {
		return &c.NamesPerDomain
	})
}

func perDomain(option, key string, n int64, of func(*crawl.Config) *int64) Option {
	return func(c *Crawler) {
		c.require(n >= 0, option, notNegative, n)
		c.markGiven(key)
		*of(&c.job.Crawl) = job.Bound(n)
	}
}

// MaxBody cuts answers off that are longer, by their bytes over the wire; 32 MiB unless set. See Page.Truncated.
func MaxBody(bytes int64) Option {
	return func(c *Crawler) {
		c.require(bytes > 0, "MaxBody", positive, bytes)
		c.job.Fetch.MaxBody = bytes
	}
}

// Memory is how many bytes queues, known URLs and pages under way may take; the rest is on the disk, with Out. A third
// of what there is unless set. What callbacks keep is not counted.
func Memory(bytes int64) Option {
	return func(c *Crawler) {
		c.require(bytes > 0, "Memory", positive, bytes)
		c.job.Memory = bytes
	}
}

// Manners.

// Delay is the time from the end of an answer to the next request to that host; one second unless set.
func Delay(d time.Duration) Option {
	return func(c *Crawler) {
		c.require(d >= 0, "Delay", notNegative, d)
		c.job.Frontier.Delay = d
	}
}

// Override gives some hosts or URLs settings in place of the crawl's, as YAML: {match: example.com, delay: 5s}, or a
// list of such mappings. Of each setting the first that matches and has it counts. See
// docs/reference/overrides.md.
func Override(yaml string) Option {
	return func(c *Crawler) {
		more, err := policy.ParseOverrides(yaml)
		if err == nil {
			err = c.job.SetOverrides(append(slices.Clone(c.job.Crawl.Overrides.All()), more...))
		}
		if err != nil {
			c.fault("Override", err)
		}
	}
}

// Concurrency is how many hosts are worked on at once; 64 unless set.
func Concurrency(hosts int) Option {
	return func(c *Crawler) {
		c.require(hosts >= 1, "Concurrency", "at least one host must be worked on", hosts)
		c.job.Frontier.Hosts = hosts
	}
}

// PerHost is how many connections a host may have; one unless set. Callbacks of one host then come as many at once.
func PerHost(connections int) Option {
	return func(c *Crawler) {
		c.require(connections >= 1, "PerHost", "a host needs at least one connection", connections)
		c.job.Frontier.PerHost = connections
	}
}

// Rate is how many requests are made a second, all hosts together; 0: without limit, as unless set.
func Rate(perSecond float64) Option {
	return func(c *Crawler) {
		c.require(perSecond >= 0, "Rate", notNegative, perSecond)
		c.job.Crawl.Rate = perSecond
	}
}

// Tries is how many visits a URL gets before it has failed; three unless set.
func Tries(n int) Option {
	return func(c *Crawler) {
		c.require(n >= 1, "Tries", "a URL needs at least one", n)
		c.job.Crawl.Tries = n
	}
}

// Timeout is how long an answer may bring nothing; 30 seconds unless set.
func Timeout(d time.Duration) Option {
	return func(c *Crawler) {
		c.require(d > 0, "Timeout", positive, d)
		c.job.Fetch.Timeout = d
	}
}

// Contact is a URL or mail address where site owners can reach you; it becomes part of the user agent.
func Contact(contact string) Option {
	return func(c *Crawler) {
		c.fault("Contact", fetch.CheckField("User-Agent", contact))
		c.job.Contact = contact
	}
}

// UserAgent is the whole User-Agent.
func UserAgent(agent string) Option {
	return func(c *Crawler) {
		c.fault("UserAgent", fetch.CheckField("User-Agent", agent))
		c.job.Fetch.UserAgent = agent
	}
}

// IgnoreRobots fetches what robots.txt forbids. Do that on your own sites only.
func IgnoreRobots() Option {
	return func(c *Crawler) {
		c.markGiven("robots")
		c.job.Crawl.IgnoreRobots = true
	}
}

// Ignore does not obey what pages ask of robots: "nofollow", "rel-nofollow", "noindex", "noarchive",
// "unavailable-after"; or "all".
func Ignore(directives ...string) Option {
	return func(c *Crawler) {
		d, err := policy.ParseDirectives(directives)
		c.fault("Ignore", err)
		c.markGiven("ignore")
		c.job.Crawl.Ignore |= d
	}
}

// AllowPrivate visits private and loopback addresses, not only at the hosts of seeds.
func AllowPrivate() Option { return func(c *Crawler) { c.job.Fetch.AllowPrivate = true } }

// How is fetched.

// Header sends a field with each request, robots.txt's among them. One whose name says that it is a secret
// (Authorization, an API key) goes to the seeds' hosts only. OnRequest changes fields of single requests.
func Header(name, value string) Option {
	return func(c *Crawler) {
		c.fault("Header", fetch.CheckField(name, value))
		if c.job.Fetch.Header == nil {
			c.job.Fetch.Header = http.Header{}
		}
		c.job.Fetch.Header.Add(name, value)
	}
}

// BasicAuth sends a name and a password to the seeds' hosts.
func BasicAuth(user, password string) Option {
	return func(c *Crawler) {
		c.require(user != "", "BasicAuth", "the name is empty", `""`)
		c.job.Fetch.User, c.job.Fetch.Password = user, password
	}
}

// Cookies sends cookies as if the server at a URL had set them before the crawl. They go to the seeds' hosts only, and
// a server's own, once it sets one of that name, takes its place.
func Cookies(rawURL string, cookies ...*http.Cookie) Option {
	return func(c *Crawler) {
		u, err := seeds.ParseURL(rawURL)
		switch {
		case slices.Contains(cookies, nil):
			err = errors.New("a cookie is nil")
		case err == nil:
			c.job.Fetch.Cookies, err = c.job.Fetch.Cookies.With(u.Hostname(), cookies...)
		}
		c.fault("Cookies", err)
	}
}

// CookieFile sends the cookies of a Netscape cookie file, as browsers' extensions and curl write it, to the seeds'
// hosts.
func CookieFile(name string) Option {
	return func(c *Crawler) {
		f, err := os.Open(name)
		if err == nil {
			defer f.Close()
			c.job.Fetch.Cookies, err = c.job.Fetch.Cookies.Load(f)
		}
		c.fault("CookieFile", err)
	}
}

// NoCookies keeps none of the cookies that servers set, and sends none back.
func NoCookies() Option { return func(c *Crawler) { c.job.NoCookies = true } }

// Login logs in before anything is fetched, by a file as kumo crawl --login has it. If that fails, Run does.
func Login(file string) Option {
	return func(c *Crawler) {
		logins, err := login.Load(file)
		c.fault("Login", err)
		c.job.Logins = logins
	}
}

// Proxy fetches through a proxy: http://, https://, socks5:// or socks5h://, with user and password if it asks for
// them. Names are looked up here, too, to keep private addresses out, but for socks5h.
func Proxy(rawURL string) Option {
	return func(c *Crawler) {
		u, err := url.Parse(rawURL)
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
			c.fault("Proxy", errors.New("a URL such as http://HOST:PORT, https://HOST:PORT, socks5://HOST:PORT or "+
				"socks5h://HOST:PORT is wanted")) // without the URL, which may have a password
			return
		}
		c.job.Fetch.Proxy = u
	}
}

// TLS is how TLS is spoken: whose certificates are believed, which versions are, which certificate is shown to servers
// that ask for one. ServerName and NextProtos follow from each URL. Without CurvePreferences keys are not exchanged by
// ML-KEM, which Go's defaults do: it costs a quarter of the CPU time where each page has its own connection. It is copied.
func TLS(cfg *tls.Config) Option {
	return func(c *Crawler) {
		if cfg == nil {
			c.fault("TLS", errors.New("the configuration is nil"))
			return
		}
		c.job.Fetch.TLS = cfg.Clone()
	}
}

// Resolver looks names up in place of the system's resolver. What it finds is kept for five minutes. Private addresses
// are refused whoever finds them, see AllowPrivate.
func Resolver(r interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}) Option {
	return func(c *Crawler) {
		if r == nil {
			c.fault("Resolver", errors.New("it is nil"))
			return
		}
		c.job.Fetch.Resolver = r
	}
}

// What is kept.

// Out keeps the crawl in a folder, as kumo crawl does: WARC, pages.jsonl, logs, and the state from which the same
// program, or kumo crawl, continues. Without it nothing is written. What decides which URLs a crawl leaves out (Scope,
// Depth, Include, Exclude, Canon, Embeds, IgnoreRobots, Ignore, Sitemaps, PagesPerHost) is kept with it: a run that
// does not say goes on with it, and one that says otherwise is refused, unless it lets more in.
func Out(dir string) Option {
	return func(c *Crawler) {
		c.require(!strings.Contains(dir, "://"), "Out", "a crawl is kept in a folder of this machine", fmt.Sprintf("%q", dir))
		c.job.Dir = dir
	}
}

// Keep puts every page into a program's own store, with Out or without. Several get each page in the order given.
func Keep(s Store) Option {
	return func(c *Crawler) {
		if s == nil {
			c.fault("Keep", errors.New("the Store is nil"))
			return
		}
		c.job.Stores = append(c.job.Stores, storeAdapter{s})
	}
}
