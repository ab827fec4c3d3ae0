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
	"kumo/internal/content/document"
	"kumo/internal/content/fetch"
	"kumo/internal/content/login"
	"kumo/internal/content/policy"
	"kumo/internal/engine/crawl"
	"kumo/internal/engine/seeds"
	"kumo/internal/state/rank"
)

// An Option changes a default of New. Run returns the errors of options, with their names.
type Option func(*Crawler)

// fault stores an option's error, unless it is nil.
func (c *Crawler) fault(option string, err error) {
	if err != nil {
		c.faults = append(c.faults, fmt.Errorf("kumo.%s: %w", option, toOptionError(err)))
	}
}

// require stores an error with the text want, unless the option's value is ok.
func (c *Crawler) require(ok bool, option, want string, value any) {
	if !ok {
		c.faults = append(c.faults, fmt.Errorf("kumo.%s(%v): %s", option, value, want))
	}
}

// markGiven records that an option gives a setting that a crawl's folder stores.
func (c *Crawler) markGiven(key string) { c.set[key] = true }

const (
	notNegative = "it cannot be negative"
	positive    = "it must be greater than zero"
	noFunction  = "the function is nil"
)

// Options that select the pages to fetch.

// Scope sets which URLs belong to the crawl, relative to its seeds: "page", "prefix", "host" (default), "domain" or
// "any".
func Scope(name string) Option {
	return func(c *Crawler) {
		mode, err := weburl.ParseMode(name)
		c.fault("Scope", err)
		c.markGiven("scope")
		c.job.Scope = mode
	}
}

// Depth sets the maximum number of links from a seed; 0: only the seeds. Negative: no limit, the default.
func Depth(hops int) Option {
	return func(c *Crawler) {
		c.markGiven("depth")
		c.job.Crawl.Depth = max(hops, -1)
	}
}

// Include fetches only URLs that match one of the expressions, and the seeds.
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

// Canon sets rules that rewrite URLs before they are compared, so that each page is fetched once under all its URLs.
// The argument is a list of rules: "tracking" and "session" remove query parameters that track visitors, "sort" sorts
// the query, "index" removes "index.html" and similar names, "www" removes that from hosts. On some sites these rules
// lose pages. Default: no rules.
func Canon(rules string) Option {
	return func(c *Crawler) {
		set, err := weburl.ParseRules(rules)
		c.fault("Canon", err)
		c.markGiven("canon")
		c.job.Crawl.Canon = set
	}
}

// Embeds also fetches images, scripts and other parts of pages, on any host.
func Embeds() Option {
	return func(c *Crawler) {
		c.markGiven("embeds")
		c.job.Crawl.Embeds = true
	}
}

// Sitemaps sets which sitemaps are read: those that robots.txt names ("named", the default), also /sitemap.xml if it
// names none ("guess"), or none ("ignore").
func Sitemaps(which string) Option {
	return func(c *Crawler) {
		s, err := policy.ParseSitemaps(which)
		c.fault("Sitemaps", err)
		c.markGiven("sitemaps")
		c.job.Crawl.Sitemaps = s
	}
}

// A Renderer runs the scripts of pages in a browser. Package kumo/render has the only implementation.
type Renderer interface{ crawl.Renderer }

// Render has a renderer run the scripts of pages: of those that need it ("auto"), of all ("always"), or of none
// ("never", without a renderer). Links, HTML, Find and Article are then those of the document after the scripts. The
// crawl closes the renderer.
func Render(pages string, r Renderer) Option {
	return func(c *Crawler) {
		mode := policy.RenderMode(pages)
		c.require(slices.Contains(policy.RenderModes, pages), "Render",
			"it is one of "+strings.Join(policy.RenderModes, ", "), fmt.Sprintf("%q", pages))
		c.require(r != nil || mode == policy.RenderNever, "Render",
			"the Renderer is nil: make one with package kumo/render", "nil")
		c.markGiven("render")
		c.job.Crawl.Render, c.job.Renderer = mode, r
	}
}

// A DocumentReader reads PDFs, office documents, e-books and images. Package kumo/documents has the only implementation.
type DocumentReader interface{ crawl.DocumentReader }

// Documents reads PDFs, office documents, e-books and images. The crawl follows their links; Page.Document has their
// metadata, and Text, HTML, Find and Article their content. The crawl closes the reader.
func Documents(r DocumentReader) Option {
	return func(c *Crawler) {
		c.require(r != nil, "Documents", "the DocumentReader is nil: make one with package kumo/documents", "nil")
		c.markGiven("documents")
		c.job.Crawl.Documents, c.job.Documents = document.Text, r
	}
}

// Order sets the order of a host's queued URLs: lowest depth first ("depth", the default), most important first by the
// links found so far ("pagerank", "opic", "indegree"), first found first ("breadth"), or random ("random").
func Order(name string) Option {
	return func(c *Crawler) {
		c.require(slices.Contains(job.Orders(), name), "Order", "it is one of "+strings.Join(job.Orders(), ", "),
			fmt.Sprintf("%q", name))
		c.markGiven(job.OrderKey)
		c.job.Order = name
	}
}

// Prefer multiplies the importance of matching URLs by weight. If several expressions match, all weights apply.
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

// Limits. When one is reached, Run returns ErrLimit.

// Limit stops the crawl after that many pages; with Out, pages of all runs count. 0: no limit, the default.
func Limit(pages int64) Option {
	return func(c *Crawler) {
		c.require(pages >= 0, "Limit", notNegative, pages)
		c.job.Crawl.Pages = pages
	}
}

// SizeLimit stops the crawl after that many bytes over the wire; with Out, those of all runs count. 0: no limit, the
// default.
func SizeLimit(bytes int64) Option {
	return func(c *Crawler) {
		c.require(bytes >= 0, "SizeLimit", notNegative, bytes)
		c.job.Crawl.Bytes = bytes
	}
}

// TimeLimit stops the run after that time; 0: no limit, the default.
func TimeLimit(d time.Duration) Option {
	return func(c *Crawler) {
		c.require(d >= 0, "TimeLimit", notNegative, d)
		c.job.Crawl.Time = d
	}
}

// NoTraps turns off the guard against traps: it also fetches URLs whose pattern yields nothing new, and ignores
// PagesPerDomain, HostsPerDomain and NamesPerDomain.
func NoTraps() Option {
	return func(c *Crawler) {
		c.markGiven(job.NoTrapsKey)
		c.job.Crawl.NoTraps = true
	}
}

// NearDuplicates compares each page's text with earlier pages, and sets Page.NearDuplicate. This takes a quarter to a
// third more CPU time.
func NearDuplicates() Option {
	return func(c *Crawler) {
		c.markGiven(job.NearDuplicatesKey)
		c.job.Crawl.NearDuplicates = true
	}
}

// PagesPerHost limits the number of pages of a host. Further URLs are excluded, which is no error. 0: no limit, the
// default.
func PagesPerHost(pages int64) Option {
	return func(c *Crawler) {
		c.require(pages >= 0, "PagesPerHost", notNegative, pages)
		c.markGiven("max-pages-per-host")
		c.job.Crawl.PagesPerHost = pages
	}
}

// BytesPerHost bounds the bytes that a host sends over the wire, robots.txt apart: once it has sent so many, the rest
// of its URLs is excluded, which is no error. 0: no limit, the default. The responses in flight still count, so a host
// may exceed it by one response a connection.
func BytesPerHost(bytes int64) Option {
	return func(c *Crawler) {
		c.require(bytes >= 0, "BytesPerHost", notNegative, bytes)
		c.markGiven(crawl.RuleBytesPerHost)
		c.job.Crawl.BytesPerHost = bytes
	}
}

// PagesPerDomain limits the number of pages of a registered domain, like PagesPerHost. Default: 10,000,000.
func PagesPerDomain(pages int64) Option {
	return perDomain("PagesPerDomain", crawl.RulePagesPerDomain, pages, func(c *crawl.Config) *int64 {
		return &c.PagesPerDomain
	})
}

// HostsPerDomain limits the number of hosts of a registered domain that are visited, besides those of seeds. 0: no
// limit. Default: 100,000.
func HostsPerDomain(hosts int64) Option {
	return perDomain("HostsPerDomain", crawl.RuleHostsPerDomain, hosts, func(c *crawl.Config) *int64 {
		return &c.HostsPerDomain
	})
}

// NamesPerDomain limits the number of names of a registered domain that are looked up, whether they exist or not,
// besides those of seeds. 0: no limit. Default: 200,000.
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

// MaxBody truncates longer responses, counted in bytes over the wire. Default: 32 MiB. See Page.Truncated.
func MaxBody(bytes int64) Option {
	return func(c *Crawler) {
		c.require(bytes > 0, "MaxBody", positive, bytes)
		c.job.Fetch.MaxBody = bytes
	}
}

// Memory limits the bytes of memory for queues, known URLs and pages in progress; with Out, the rest is on disk.
// Default: a third of the available memory. Data that callbacks keep is not counted.
func Memory(bytes int64) Option {
	return func(c *Crawler) {
		c.require(bytes > 0, "Memory", positive, bytes)
		c.job.Memory = bytes
	}
}

// Options for politeness.

// Delay sets the time from the end of an answer to the next request to the same host. Default: one second.
func Delay(d time.Duration) Option {
	return func(c *Crawler) {
		c.require(d >= 0, "Delay", notNegative, d)
		c.job.Frontier.Delay = d
	}
}

// Override changes settings for some hosts or URLs. The argument is YAML: {match: example.com, delay: 5s}, or a list of
// such mappings. For each setting, the first matching entry that has it applies. See docs/reference/overrides.md.
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

// Concurrency sets the number of hosts that are visited at once. Default: 64.
func Concurrency(hosts int) Option {
	return func(c *Crawler) {
		c.require(hosts >= 1, "Concurrency", "at least one host must be worked on", hosts)
		c.job.Frontier.Hosts = hosts
	}
}

// PerHost sets the maximum number of connections to a host, and so of concurrent callbacks for a host. Default: one.
func PerHost(connections int) Option {
	return func(c *Crawler) {
		c.require(connections >= 1, "PerHost", "a host needs at least one connection", connections)
		c.job.Frontier.PerHost = connections
	}
}

// Rate limits the requests per second to all hosts together; 0: no limit, the default.
func Rate(perSecond float64) Option {
	return func(c *Crawler) {
		c.require(perSecond >= 0, "Rate", notNegative, perSecond)
		c.job.Crawl.Rate = perSecond
	}
}

// Tries sets the number of attempts before a URL fails. Default: three.
func Tries(n int) Option {
	return func(c *Crawler) {
		c.require(n >= 1, "Tries", "a URL needs at least one", n)
		c.job.Crawl.Tries = n
	}
}

// Timeout sets how long a response may make no progress. Default: 30 seconds.
func Timeout(d time.Duration) Option {
	return func(c *Crawler) {
		c.require(d > 0, "Timeout", positive, d)
		c.job.Fetch.Timeout = d
	}
}

// Contact sets a URL or mail address where site owners can reach you. It becomes part of the User-Agent.
func Contact(contact string) Option {
	return func(c *Crawler) {
		c.fault("Contact", fetch.CheckField("User-Agent", contact))
		c.job.Contact = contact
	}
}

// UserAgent sets the complete User-Agent.
func UserAgent(agent string) Option {
	return func(c *Crawler) {
		c.fault("UserAgent", fetch.CheckField("User-Agent", agent))
		c.job.Fetch.UserAgent = agent
	}
}

// IgnoreRobots fetches URLs that robots.txt forbids. Use it on your own sites only.
func IgnoreRobots() Option {
	return func(c *Crawler) {
		c.markGiven("robots")
		c.job.Crawl.IgnoreRobots = true
	}
}

// Ignore ignores robots directives of pages: "nofollow", "rel-nofollow", "noindex", "noarchive", "unavailable-after",
// or "all".
func Ignore(directives ...string) Option {
	return func(c *Crawler) {
		d, err := policy.ParseDirectives(directives)
		c.fault("Ignore", err)
		c.markGiven("ignore")
		c.job.Crawl.Ignore |= d
	}
}

// Usage decides what happens with pages whose site does not allow a use: "record" (the default) records what is stated in
// Page.Usage; "obey=train-ai,tdm" makes no text and no fields of such pages, and sends them to no sink;
// "skip=train-ai,tdm" also does not fetch URLs whose robots.txt does not allow it. The uses are train-ai, search,
// ai-input and tdm.
func Usage(mode string) Option {
	return func(c *Crawler) {
		u, err := policy.ParseUsage(mode)
		c.fault("Usage", err)
		c.markGiven("usage")
		c.job.Crawl.Usage = u
	}
}

// AllowPrivate allows private and loopback addresses for all hosts. By default, only hosts of seeds may have them.
func AllowPrivate() Option { return func(c *Crawler) { c.job.Fetch.AllowPrivate = true } }

// Options for requests.

// Transport sends all requests through rt instead of the network, including those for robots.txt and logins: for tests
// without a server, and for networks that kumo does not know. rt gets each request of a redirect. It must be safe for
// concurrent use. Names are not looked up, so limits by address do not apply; other options apply as usual. An error of
// rt counts as a failed connection.
func Transport(rt http.RoundTripper) Option {
	return func(c *Crawler) {
		c.require(rt != nil, "Transport", "the RoundTripper is nil", "nil")
		c.job.Fetch.Transport = rt
	}
}

// Header adds a header field to each request, including those for robots.txt. If its name marks a secret
// (Authorization, an API key), it is sent only to the seeds' hosts. OnRequest can change the fields of single requests.
func Header(name, value string) Option {
	return func(c *Crawler) {
		c.fault("Header", fetch.CheckField(name, value))
		if c.job.Fetch.Header == nil {
			c.job.Fetch.Header = http.Header{}
		}
		c.job.Fetch.Header.Add(name, value)
	}
}

// BasicAuth sends a user name and a password to the seeds' hosts.
func BasicAuth(user, password string) Option {
	return func(c *Crawler) {
		c.require(user != "", "BasicAuth", "the name is empty", `""`)
		c.job.Fetch.User, c.job.Fetch.Password = user, password
	}
}

// Cookies sends cookies as if the server at a URL had set them before the crawl. They are sent only to the seeds'
// hosts. A cookie of the same name from the server replaces them.
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

// CookieFile sends the cookies of a Netscape cookie file, as written by browser extensions and curl, to the seeds'
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

// NoCookies ignores cookies from servers.
func NoCookies() Option { return func(c *Crawler) { c.job.NoCookies = true } }

// Login logs in before anything is fetched, with a configuration file as for kumo crawl --login. If the login fails,
// Run returns an error.
func Login(file string) Option {
	return func(c *Crawler) {
		logins, err := login.Load(file)
		c.fault("Login", err)
		c.job.Logins = logins
	}
}

// Proxy fetches through a proxy: http://, https://, socks5:// or socks5h://, with user name and password if necessary.
// Except with socks5h, kumo also resolves the names itself, to refuse private addresses.
func Proxy(rawURL string) Option {
	return func(c *Crawler) {
		u, err := url.Parse(rawURL)
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
			c.fault("Proxy", errors.New("want a URL such as http://HOST:PORT, https://HOST:PORT, socks5://HOST:PORT or "+
				"socks5h://HOST:PORT")) // omits the URL, which may contain a password
			return
		}
		c.job.Fetch.Proxy = u
	}
}

// TLS sets the TLS configuration: root certificates, versions, and client certificates. ServerName and NextProtos
// follow from each URL. Without CurvePreferences, ML-KEM key exchange is off, unlike in Go's defaults: it costs a
// quarter of the CPU time if each page needs a new connection. The configuration is copied.
func TLS(cfg *tls.Config) Option {
	return func(c *Crawler) {
		if cfg == nil {
			c.fault("TLS", errors.New("the configuration is nil"))
			return
		}
		c.job.Fetch.TLS = cfg.Clone()
	}
}

// Resolver resolves names instead of the system's resolver. Results are cached for five minutes. Private addresses are
// refused as usual, see AllowPrivate.
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

// Options for storage.

// Out stores the crawl in a folder, like kumo crawl: WARC, pages.jsonl, logs, and the state from which the same
// program, or kumo crawl, resumes. Without it, nothing is written. The folder also stores the settings that decide
// which URLs are excluded (Scope, Depth, Include, Exclude, Canon, Embeds, IgnoreRobots, Ignore, Sitemaps,
// PagesPerHost). A later run without such an option uses the stored value. A later run with another value fails, unless
// the value only admits more URLs.
func Out(dir string) Option {
	return func(c *Crawler) {
		c.require(!strings.Contains(dir, "://"), "Out", "want a folder of this machine", fmt.Sprintf("%q", dir))
		c.job.Dir = dir
	}
}

// Keep passes every page to a store of the program, with or without Out. Several stores get each page in the given
// order.
func Keep(s Store) Option {
	return func(c *Crawler) {
		if s == nil {
			c.fault("Keep", errors.New("the Store is nil"))
			return
		}
		c.job.Stores = append(c.job.Stores, storeAdapter{s})
	}
}
