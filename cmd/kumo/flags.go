package main

import (
	"fmt"
	"net/http"
	"net/mail"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"kumo/internal/app/job"
	"kumo/internal/content/fetch"
	"kumo/internal/content/login"
	"kumo/internal/content/policy"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/frontier"
	"kumo/internal/state/rank"
)

// options are kumo crawl's flags: those that are a job's are bound to it, the others are kept here until they can be
// read.
type options struct {
	job  job.Job
	idle bool // nothing is to be fetched, so that secrets are not needed

	inputFile string
	skipBad   bool
	seedFiles []string // what earlier runs' seeds came from
	warnings  []string // of how the settings were read
	config    string
	out       string
	work      string        // where the crawl is whose files go to a place
	place     string        // the place's URL; "" if files stay in the folder
	keepLocal bool          // WARC files stay there, too
	placeWait time.Duration // for a place that fails, at the end
	mirrored  string        // the folder of the mirror whose crawl this is
	robots    string
	ignore    []string
	sitemaps  string
	text      bool
	index     bool
	fields    string
	filtering filtering
	minFree   int64
	include   []string
	exclude   []string
	recrawl   []string
	prefer    []string
	overrides []string
	due       bool
	headers   []string
	cookies   string
	login     string
	proxies   []string
	depth     string
	maxDelay  time.Duration
	metrics   string
	ui        uiFlags
	profile   string
	dryRun    bool
	verbose   bool
	quiet     bool
	logJSON   bool
	noReport  bool // what it came to is said otherwise
	sinks     []string
	sinkWait  time.Duration
	pipes     bool // --out may be -
}

const noLimit = job.NoLimit

// bind declares the flags. Their names are the keys of a configuration file, too.
func (o *options) bind(f *pflag.FlagSet) {
	o.bindCrawl(f)
	o.bindManners(f)
	o.bindFetch(f)
	o.bindOutput(f)
	f.SortFlags = false
}

func (o *options) bindCrawl(f *pflag.FlagSet) {
	j := &o.job
	f.StringVarP(&o.inputFile, "input-file", "i", "", "read seeds from `FILE`, a URL a line, comments behind a #; - is "+
		"standard input; millions are fine")
	f.BoolVar(&o.skipBad, "skip-bad-seeds", false, "go on without lines of the input file that are no URLs")
	f.StringVar(&j.Name, "name", "", "the crawl's name (default: the first seed's host)")
	f.StringVarP(&o.out, "out", "o", "", "the crawl's folder (default: crawls/NAME), or the URL of a place to which its "+
		"files are brought while it runs (see docs/crawl-to-place.md); - keeps nothing, and writes pages to standard "+
		"output, as JSON Lines")
	f.BoolVar(&j.Fresh, "fresh", false, "begin again: the crawl that is in the folder is set aside, into one in it")
	f.StringVar(&o.config, "config", "", "read settings from a YAML `FILE`; its keys are these flags' names, flags win")
	f.StringVarP(&o.depth, "depth", "d", noLimit, "follow links this many `HOPS` from a seed; 0 is the seeds only")
	f.Var(scope{&j.Scope}, "scope", "which URLs belong to the crawl, seen from its seeds")
	f.StringArrayVar(&o.include, "include", nil, "fetch only URLs that match `REGEX` (repeatable; seeds need not match)")
	f.StringArrayVar(&o.exclude, "exclude", nil, "never fetch URLs that match `REGEX` (repeatable)")
	f.Var(&rules{&j.Crawl.Canon}, "canon", "also drop from URLs: tracking, session (parameters), index (pages), www; "+
		"sort (the query); or none")
	f.BoolVar(&j.Crawl.Embeds, "embeds", false, "fetch images, style sheets, scripts and other parts of pages, too, "+
		"wherever they lie")
	o.sitemaps = policy.SitemapsNamed.String()
	f.Var(choice{&o.sitemaps, policy.SitemapsNames()}, "sitemaps", "read the sitemaps that robots.txt names; guess: "+
		"and /sitemap.xml where it names none")
	f.BoolVar(&j.ScriptPaths, "script-paths", false, "follow what looks like a path in scripts, too")
	j.Order = job.ByDepth
	f.Var(choice{&j.Order, job.Orders()}, job.OrderKey, "which of the URLs that wait at a host goes first: the least "+
		"deep, the most important by links (pagerank, opic, indegree), the first found (breadth), or any")
	f.StringArrayVar(&o.prefer, job.PreferKey, nil, "take URLs that match for WEIGHT times as important, or less so "+
		"with a weight below 1 (`REGEX=WEIGHT`, repeatable)")
	f.StringArrayVar(&j.Block, job.BlockKey, nil, "never fetch what `RULE` names: a host, with its subdomains, or a "+
		"/regex/ (repeatable; kumo block adds some while a crawl runs; a crawl that goes on keeps those that it has, unless "+
		"an empty one is among these)")
	f.StringVar(&j.BlockFile, "block-file", "", "never fetch what `FILE` names: a host or a /regex/ a line; read again "+
		"when it changes")
	f.Int64Var(&j.Crawl.Pages, "limit", 0, "stop after `N` pages of all runs together, whatever their status (0: "+
		"no limit)")
	f.Var(size{&j.Crawl.Bytes}, "size-limit", "stop after so many bytes over the wire, of all runs together (0: no limit)")
	durationVar(f, &j.Crawl.Time, "time-limit", 0, "stop after this time (0: no limit)")
	f.StringArrayVar(&o.recrawl, "recrawl", nil, "visit URLs again: EVERY, or EVERY,LEAST,MOST, or never; "+
		"'REGEX=EVERY' for those that match (`INTERVAL`, repeatable)")
	f.BoolVar(&o.due, "due", false, "visit what is due again, and end (without --recrawl: what was visited 7 days ago)")
	f.BoolVar(&j.Crawl.NoTraps, job.NoTrapsKey, false, "do not defer or leave out what is like a trap: URLs whose pattern "+
		"brings nothing new, without end, and what a registered domain has too much of (see kumo traps)")
	f.StringArrayVar(&j.Crawl.ReleasedTraps, job.ReleaseTrapKey, nil, "fetch what has this `PATTERN` "+
		"although it is like a trap, as kumo traps lists them (repeatable); what was left out waits again")
	f.Var(&overrides{&o.overrides}, job.OverrideKey, "what some hosts or URLs have in place of other settings, as YAML: "+
		"'{match: example.com, delay: 5s}', a list of these, or @FILE with one (repeatable; the first that matches "+
		"and has a setting counts; see docs/overrides.md)")
	f.Int64Var(&j.Crawl.PagesPerHost, "max-pages-per-host", 0, "at most `N` pages of one host (0: no limit)")
	j.Crawl.PagesPerDomain, j.Crawl.HostsPerDomain, j.Crawl.NamesPerDomain = crawl.DefaultPagesPerDomain,
		crawl.DefaultHostsPerDomain,
		crawl.DefaultNamesPerDomain
	f.Var(most{&j.Crawl.PagesPerDomain}, crawl.RulePagesPerDomain,
		"at most `N` pages of one registered domain (0: no limit)")
	f.Var(most{&j.Crawl.HostsPerDomain}, crawl.RuleHostsPerDomain, "fetch from `N` hosts of one registered domain "+
		"at most, seeds' hosts apart (0: no limit)")
	f.Var(most{&j.Crawl.NamesPerDomain}, crawl.RuleNamesPerDomain, "look up `N` names of one registered domain at most, "+
		"whether they are known or not, seeds' apart (0: no limit)")
}

func (o *options) bindManners(f *pflag.FlagSet) {
	j := &o.job
	f.IntVarP(&j.Frontier.Hosts, "concurrency", "c", 64, "work on `N` hosts at once")
	f.IntVar(&j.Frontier.PerHost, "per-host", 1, "open `N` connections to one host")
	f.IntVar(&j.Frontier.Slices, job.SlicesKey, 1, "cut each host into `N` parts, by a hash of its URLs, that several "+
		"nodes can share; the host gets up to N requests at once, so --delay 0 or --per-host N is needed, too")
	durationVar(f, &j.Frontier.Delay, "delay", time.Second, "wait this long from the end of an answer to the next "+
		"request to that host")
	durationVar(f, &j.Frontier.AddrDelay, "ip-delay", 250*time.Millisecond,
		"wait this long between requests to an address that several hosts share")
	durationVar(f, &o.maxDelay, "max-crawl-delay", 30*time.Second, "obey a robots.txt's Crawl-delay up to this (0: not "+
		"at all)")
	durationVar(f, &j.Frontier.MaxWait, "max-backoff", frontier.DefaultMaxWait,
		"leave a host that fails, or asks for it (Retry-After), alone for this long at most")
	o.robots = "obey"
	f.Var(choice{&o.robots, []string{"obey", "ignore"}}, "robots", "what to do with robots.txt")
	f.StringSliceVar(&o.ignore, "ignore", nil, "do not obey these `DIRECTIVES` of pages: nofollow, rel-nofollow, "+
		"noindex, noarchive, unavailable-after; or all")
	f.Float64Var(&j.Crawl.Rate, "max-rate", 0, "at most `N` requests a second, all hosts together (0: no limit)")
	f.Float64Var(&j.Fetch.LookupRate, "rate-dns", 0, "look up at most `N` names a second (0: no limit); hosts whose "+
		"address is known do not wait")
	f.Var(size{&j.Fetch.Bandwidth}, "bandwidth", "receive at most so many bytes a second (0: no limit)")
	f.StringVar(&j.Contact, "contact", "", "a `URL` or mail address where site owners can reach you; part of the "+
		"user agent")
	f.StringVar(&j.Fetch.UserAgent, "user-agent", "", "the whole User-Agent (default: Mozilla/5.0 (compatible; "+
		"kumo/VERSION; +CONTACT))")
}

func (o *options) bindFetch(f *pflag.FlagSet) {
	c := &o.job.Fetch
	f.StringArrayVar(&o.headers, "header", nil, "send `'NAME: VALUE'` with each request (repeatable); secret ones go "+
		"to the seeds' hosts only; not Host, see --resolve")
	f.StringVar(&o.cookies, "cookies", "", "send the cookies of this Netscape cookie `FILE` to the seeds' hosts")
	f.StringVar(&o.login, "login", "", "log in as this `FILE` says: a list of sites, each with the form's url, its "+
		"fields and what tells success (see docs/login.md)")
	f.BoolVar(&o.job.NoCookies, "no-cookies", false, "do not keep the cookies that servers set (by default they are "+
		"sent back, as long as the crawl goes on)")
	f.StringVar(&c.User, "user", "", "log in at the seeds' hosts with this name (Basic)")
	f.StringVar(&c.Password, "password", "", "and this password")
	f.StringArrayVar(&o.proxies, "proxy", nil, "fetch through a proxy: http://, https://, socks5:// or socks5h:// "+
		"`URL`, or DOMAIN=URL for a domain and its subdomains, none for no proxy (repeatable: of several each host keeps to "+
		"one, and one that fails is left out for a while); names are looked up here, too, to keep private addresses out, "+
		"but for socks5h (default: as HTTP_PROXY, HTTPS_PROXY and NO_PROXY say, which leave this machine's own "+
		"addresses out)")
	bindTLS(f, &c.InsecureTLS, &c.PostQuantumTLS, &c.LegacyTLS)
	durationVar(f, &c.ConnectTimeout, "connect-timeout", 10*time.Second, "give up a connection after this time")
	durationVar(f, &c.Timeout, "timeout", 30*time.Second, "give up an answer that brings nothing for this time")
	f.IntVar(&o.job.Crawl.Tries, "tries", 3, "visit a URL up to `N` times before it has failed")
	f.DurationVar(&o.job.Crawl.OutageWait, "outage-wait", 24*time.Hour, "when nothing is reached any more, wait this "+
		"long for the web to come back, then end (0: without end)")
	c.MaxBody = 32 << 20
	f.Var(size{&c.MaxBody}, "max-body", "cut longer answers off here")
	f.BoolVar(&c.AllowPrivate, "allow-private", false, "visit private, loopback and link-local addresses, not only at "+
		"seeds' hosts")
	f.StringArrayVar(&c.Resolve, "resolve", nil, "connect to ADDR for HOST:PORT, as `HOST:PORT:ADDR` (repeatable; a * "+
		"stands for every host or port)")
	f.StringVar(&c.DNSServer, "dns-server", "", "ask this name server (`HOST:PORT`) instead of the system's")
}

func (o *options) bindOutput(f *pflag.FlagSet) {
	j := &o.job
	f.StringSliceVar(&j.Formats, "format", []string{"warc", "jsonl"}, "what to write: warc, jsonl")
	f.BoolVar(&o.text, "text", false, "write each page's main text, headline, author and date to text.jsonl, too")
	f.BoolVar(&o.index, "index", false, "make a full-text index of the pages, too, for kumo search and the page of --ui; "+
		"with --text, as that is what is found (see docs/search.md)")
	f.StringVar(&o.fields, job.FieldsKey, "", "make records of pages by the rules in this YAML `FILE`, and write them to "+
		"fields.jsonl (see docs/fields.md, kumo check fields)")
	o.filtering.bind(f)
	f.StringArrayVar(&o.sinks, "sink", nil, "send records to this server, too, while the crawl runs: a `URL` as of kumo "+
		"export --to (repeatable; see docs/sinks.md)")
	durationVar(f, &o.sinkWait, "sink-wait", time.Minute,
		"when the crawl is done, wait this long for a sink that takes nothing")
	j.WARCSize = 1e9
	f.Var(size{&j.WARCSize}, "warc-size", "begin a new WARC file at this size")
	f.BoolVar(&j.Moved, "moved", false, "finished WARC files that are no longer in the folder were moved away on purpose")
	f.StringVar(&o.work, "work", "", "with a place: the crawl's own `FOLDER` on this machine (default: one below "+
		"crawls/, named after the place)")
	f.BoolVar(&o.keepLocal, keepLocalKey, true, "with a place: keep WARC files that are there in the folder, too; with "+
		"=false they are removed there, and read from the place")
	durationVar(f, &o.placeWait, "place-wait", 10*time.Minute, "with a place: when the crawl is done, wait so long for "+
		"a place that fails; then end, and the same command brings the rest there")
	j.Compress = "gzip"
	f.Var(choice{&j.Compress, []string{"gzip", "zstd"}}, "compress", "how WARC files are compressed")
	f.Var(size{&j.Memory}, "memory", "take so much memory for queues, known URLs and pages under way, the rest on disk "+
		"(0: a third of what there is, by the machine or the limit set on it)")
	j.Crawl.Checkpoint = 64 << 20
	f.Var(size{&j.Crawl.Checkpoint}, "checkpoint", "make a checkpoint after so much journal; more makes the start "+
		"after a crash slower")
	durationVar(f, &j.Crawl.Commit, "commit", 50*time.Millisecond, "make what was fetched durable this often; a crash "+
		"costs what came after")
	o.minFree = 1e9
	f.Var(size{&o.minFree}, "min-free-disk", "fetch nothing while the disk has less room than this (0: whatever it has)")
	o.ui.bind(f, "ui")
	f.StringVar(&o.metrics, "metrics", "", "serve Prometheus metrics and pprof at `ADDR`, e.g. localhost:9090")
	f.StringVar(&o.profile, "profile", "", "write profiles of CPU, memory, blocking and locks to `DIR`, for go tool pprof")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be done, and do nothing")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "log every URL")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "log errors only, and no report")
	f.BoolVar(&o.logJSON, "log-json", false, "log as JSON")
}

// finish reads the flags that are not bound to the job.
func (o *options) finish() (err error) {
	j := &o.job
	if j.Crawl.Depth, err = parseDepth(o.depth); err != nil {
		return err
	}
	if j.Crawl.Include, err = compile("include", o.include); err != nil {
		return err
	}
	if j.Crawl.Exclude, err = compile("exclude", o.exclude); err != nil {
		return err
	}
	if _, err = policy.ParseBlocks(withSaved(j.Block, nil)); err != nil {
		return usagef("--%s: %v", job.BlockKey, err)
	}
	if j.Fetch.Header, err = parseHeaders(o.headers); err != nil {
		return err
	}
	if j.Fetch.Cookies, err = loadCookies(o.cookies); err != nil {
		return err
	}
	if j.Logins, err = o.loadLogins(); err != nil {
		return err
	}
	if err = o.chooseProxies(); err != nil {
		return err
	}
	if j.Crawl.Recrawl, err = parseRecrawl(o.recrawl, o.due); err != nil {
		return err
	}
	j.Crawl.Prefer = nil
	for _, rule := range o.prefer {
		p, err := rank.ParsePreference(rule)
		if err != nil {
			return usagef("--%s: %v", job.PreferKey, err)
		}
		j.Crawl.Prefer = append(j.Crawl.Prefer, p...)
	}
	if err := o.readOverrides(); err != nil {
		return err
	}
	if r := &j.Crawl.Recrawl; len(r.Intervals) == 0 && j.Crawl.Overrides.Revisit() {
		r.Intervals, r.Keep = []policy.Interval{{}}, true // never, but for what overrides say
	}
	j.Crawl.IgnoreRobots = o.robots == "ignore"
	if j.Crawl.Ignore, err = policy.ParseDirectives(o.ignore); err != nil {
		return usagef("--ignore: %v", err)
	}
	o.ignore = j.Crawl.Ignore.Names() // in one order, to be compared with what was saved
	if j.Crawl.Sitemaps, err = policy.ParseSitemaps(o.sitemaps); err != nil {
		return usagef("--sitemaps: %v", err)
	}
	j.Crawl.MinFree = uint64(o.minFree)
	if o.text = o.text || o.index; o.text {
		j.Text = mainTexts(o.job.Shares)
	}
	if j.Fields, err = o.loadFields(); err != nil {
		return err
	}
	if !o.idle {
		if err := o.filtering.check(); err != nil {
			return err
		}
	}
	if j.Frontier.MaxDelay = o.maxDelay; o.maxDelay == 0 {
		j.Frontier.MaxDelay = -1
	}
	return o.check()
}

// check refuses numbers that mean nothing.
func (o *options) check() error {
	j := &o.job
	switch {
	case hasControl(j.Fetch.UserAgent) || hasControl(j.Contact):
		return usagef("--user-agent and --contact cannot have control characters: they are sent in a header")
	case j.Contact != "" && !isContact(j.Contact):
		return usagef("--contact %q: give a URL such as https://example.org/bot, or a mail address", j.Contact)
	case j.Memory > 0 && j.Memory < leastMemory:
		return usagef("--memory %s: give at least 1MiB, or 0 for the default", size{&j.Memory}.String())
	case j.Fetch.DNSServer != "" && fetch.CheckDNSServer(j.Fetch.DNSServer) != nil:
		return usagef("--dns-server %w", fetch.CheckDNSServer(j.Fetch.DNSServer))
	case j.Fetch.Password != "" && j.Fetch.User == "":
		return usagef("--password goes with --user")
	case j.Fetch.Timeout <= 0 || j.Fetch.ConnectTimeout <= 0:
		return usagef("--timeout and --connect-timeout must be longer than nothing")
	case j.Fetch.MaxBody <= 0 || j.WARCSize <= 0:
		return usagef("--max-body and --warc-size must be more than nothing")
	case j.Crawl.Commit <= 0:
		return usagef("--commit must be longer than nothing")
	case len(j.Formats) == 0:
		return usagef("--format is empty: name warc, jsonl or both")
	case j.Frontier.Hosts < 1:
		return usagef("--concurrency is %d: at least one host must be worked on", j.Frontier.Hosts)
	case j.Frontier.PerHost < 1:
		return usagef("--per-host is %d: a host needs at least one connection", j.Frontier.PerHost)
	case j.Crawl.Tries < 1:
		return usagef("--tries is %d: a URL needs at least one", j.Crawl.Tries)
	case j.Frontier.Delay < 0 || j.Frontier.AddrDelay < 0 || o.maxDelay < 0:
		return usagef("a delay cannot be negative")
	case j.Frontier.MaxWait <= 0:
		return usagef("--max-backoff must be longer than nothing")
	case j.Crawl.OutageWait < 0:
		return usagef("--outage-wait cannot be negative")
	case j.Crawl.Pages < 0 || j.Crawl.PagesPerHost < 0 || j.Crawl.Time < 0 || j.Crawl.Rate < 0:
		return usagef("a limit cannot be negative")
	case j.Crawl.NoTraps && boundOfDomains(&j.Crawl) != "":
		return usagef("--no-traps does not go with --%s, which it lifts: leave it out, or give it with 0",
			boundOfDomains(&j.Crawl))
	case o.verbose && o.quiet:
		return usagef("--verbose and --quiet do not go together")
	}
	return nil
}

const leastMemory = 1 << 20

// isContact reports whether a text is an http URL or a mail address.
func isContact(text string) bool {
	if u, err := url.Parse(text); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		return u.Host != ""
	}
	a, err := mail.ParseAddress(strings.TrimPrefix(text, "mailto:"))
	return err == nil && a.Name == ""
}

// boundOfDomains is a bound that somebody has set, by its flag.
func boundOfDomains(c *crawl.Config) string {
	switch {
	case c.PagesPerDomain > 0 && c.PagesPerDomain != crawl.DefaultPagesPerDomain:
		return crawl.RulePagesPerDomain
	case c.HostsPerDomain > 0 && c.HostsPerDomain != crawl.DefaultHostsPerDomain:
		return crawl.RuleHostsPerDomain
	case c.NamesPerDomain > 0 && c.NamesPerDomain != crawl.DefaultNamesPerDomain:
		return crawl.RuleNamesPerDomain
	}
	return ""
}

func parseDepth(s string) (int, error) {
	if s == noLimit {
		return -1, nil
	}
	var n int
	if _, err := fmt.Sscanf(s+"\n", "%d\n", &n); err != nil || n < 0 {
		return 0, usagef("--depth is %q: a number of hops is wanted, 0 for the seeds only", s)
	}
	return n, nil
}

func parseRecrawl(intervals []string, due bool) (r policy.Recrawl, err error) {
	for _, text := range intervals {
		i, err := policy.ParseInterval(text)
		if err != nil {
			return r, usagef("--recrawl: %v", err)
		}
		r.Intervals = append(r.Intervals, i)
	}
	r.Keep = len(intervals) > 0 && !due
	if due && len(intervals) == 0 {
		r.Intervals = []policy.Interval{policy.DefaultInterval()}
	}
	return r, nil
}

func compile(flag string, patterns []string) ([]*regexp.Regexp, error) {
	var res []*regexp.Regexp
	for _, p := range patterns {
		if p == "" {
			return nil, usagef("--%s: the pattern is empty, which every URL matches", flag)
		}
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, usagef("--%s: %v", flag, err)
		}
		res = append(res, re)
	}
	return res, nil
}

func parseHeaders(lines []string) (http.Header, error) {
	h := http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t") || hasControl(line) {
			return nil, usagef("--header %q: a NAME: VALUE is wanted", line)
		}
		if err := fetch.CheckField(name, strings.TrimSpace(value)); err != nil {
			return nil, usagef("--header %s: %v", name, err)
		}
		h.Add(name, strings.TrimSpace(value))
	}
	return h, nil
}

func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }

// loadLogins reads the file again each time: it may have changed. Who only looks into a crawl logs in nowhere.
func (o *options) loadLogins() (*login.Config, error) {
	if o.login == "" || o.idle {
		return nil, nil
	}
	c, err := login.Load(o.login)
	if err != nil {
		return nil, usagef("--login: %w", err)
	}
	if o.job.NoCookies {
		return nil, usagef("--login does not go with --no-cookies: a site knows by a cookie who is logged in")
	}
	return c, nil
}

func loadCookies(name string) (*fetch.Cookies, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, &usage{err}
	}
	defer f.Close()
	cookies, err := fetch.LoadCookies(f)
	if err != nil {
		return nil, usagef("cookie file %s: %w", name, err)
	}
	return cookies, nil
}
