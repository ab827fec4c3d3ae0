package main

import (
	"net/http"
	"net/mail"
	"net/url"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/pflag"

	"kumo/internal/app/job"
	"kumo/internal/app/setting"
	"kumo/internal/content/fetch"
	"kumo/internal/content/login"
	"kumo/internal/content/policy"
	"kumo/internal/engine/crawl"
)

// options are the settings of kumo crawl, and their use by a command.
type options struct {
	setting.Values
	noFetch bool // the command fetches nothing, so it needs no secrets
	// nodes on other machines fetch, so this one needs no browser
	othersFetch bool
	seedFiles   []string // files with the seeds of earlier runs
	warnings    []string // warnings found while the settings were read
	inherited   []string // settings of the earlier run that apply, as flags
	place       string   // URL of the storage location for uploads; "" if files stay in the folder
	mirrorDir   string   // folder of the mirror that the crawl belongs to
	noReport    bool     // the caller prints the report
	allowPipe   bool     // --out may be -
	rulesText   string   // content of the file --fields
}

func (o *options) bind(f *pflag.FlagSet) {
	o.Reset()
	for i := range setting.All {
		addFlag(f, &setting.All[i], &o.Values)
	}
	f.SortFlags = false
}

func addFlag(f *pflag.FlagSet, s *setting.Setting, v *setting.Values) {
	value := s.Value(v)
	fl := f.VarPF(value, s.Key, s.Short, s.Help)
	fl.NoOptDefVal = s.NoValue
	if value.Type() == "bool" {
		fl.NoOptDefVal = "true"
	}
}

// finish reads the flags that are not bound to the job.
func (o *options) finish() (err error) {
	j := &o.Job
	if _, err = policy.ParseBlocks(withSaved(j.Block, nil)); err != nil {
		return usagef("--%s: %v", job.BlockKey, err)
	}
	if j.Fetch.Header, err = parseHeaders(o.Headers); err != nil {
		return err
	}
	if j.Fetch.Cookies, err = loadCookies(o.Cookies); err != nil {
		return err
	}
	if j.Logins, err = o.loadLogins(); err != nil {
		return err
	}
	if err = o.chooseProxies(); err != nil {
		return err
	}
	if j.Crawl.Recrawl, err = parseRecrawl(o.Recrawl, o.Due); err != nil {
		return err
	}
	if err := o.readOverrides(); err != nil {
		return err
	}
	if r := &j.Crawl.Recrawl; len(r.Intervals) == 0 && j.Crawl.Overrides.Recrawls() {
		r.Intervals, r.Continuous = []policy.Interval{{}}, true // never, except where overrides set an interval
	}
	if o.Text = o.Text || o.Index; o.Text {
		j.Text = mainTexts(o.Job.Shares)
	}
	if j.Documents, err = documentsOf(o); err != nil {
		return err
	}
	if j.Fields, err = o.loadFields(); err != nil {
		return err
	}
	if err = loadBehavior(o); err != nil {
		return err
	}
	if j.Renderer, err = newRenderer(o); err != nil {
		return err
	}
	if !o.noFetch {
		if err := checkFilters(&o.Filter); err != nil {
			return err
		}
	}
	return o.check()
}

func (o *options) check() error {
	j := &o.Job
	switch {
	case hasControl(j.Fetch.UserAgent) || hasControl(j.Contact):
		return usagef("--user-agent and --contact cannot contain control characters: they are sent in a header")
	case j.Contact != "" && !isContact(j.Contact):
		return usagef("--contact %q: give a URL such as https://example.org/bot, or a mail address", j.Contact)
	case j.Memory > 0 && j.Memory < minMemory:
		return usagef("--memory %s: give at least 1MiB, or 0 for the default", setting.Size(&j.Memory).String())
	case j.Fetch.DNSServer != "" && fetch.CheckDNSServer(j.Fetch.DNSServer) != nil:
		return usagef("--dns-server %w", fetch.CheckDNSServer(j.Fetch.DNSServer))
	case j.Fetch.Password != "" && j.Fetch.User == "":
		return usagef("--password needs --user")
	case j.Fetch.Timeout <= 0 || j.Fetch.ConnectTimeout <= 0:
		return usagef("--timeout and --connect-timeout must be greater than zero")
	case j.Fetch.MaxBody <= 0 || j.WARCSize <= 0:
		return usagef("--max-body and --warc-size must be greater than zero")
	case j.Crawl.Commit <= 0:
		return usagef("--commit must be greater than zero")
	case len(j.Formats) == 0:
		return usagef("--format is empty: name warc, jsonl or both")
	case j.Frontier.Hosts < 1:
		return usagef("--concurrency is %d: give at least 1", j.Frontier.Hosts)
	case j.Frontier.PerHost < 1:
		return usagef("--per-host is %d: a host needs at least one connection", j.Frontier.PerHost)
	case j.Crawl.Tries < 1:
		return usagef("--tries is %d: a URL needs at least one", j.Crawl.Tries)
	case j.Frontier.Delay < 0 || j.Frontier.AddrDelay < 0:
		return usagef("a delay cannot be negative")
	case j.Frontier.MaxWait <= 0:
		return usagef("--max-backoff must be greater than zero")
	case o.Browser.Pages < 0 || o.Browser.Timeout <= 0:
		return usagef("--render-pages cannot be negative, and --render-timeout must be greater than zero")
	case len(j.Crawl.RenderActions) > 0 && !renders(o):
		return usagef("--render-actions are for rendered pages: add --%s auto or always", setting.RenderKey)
	case j.Crawl.RenderVirtualTime < 0:
		return usagef("--render-virtual-time cannot be negative")
	case (len(j.Crawl.Shots) > 0 || j.Crawl.PrintPDF) && !renders(o):
		return usagef("--%s and --pdf show rendered pages: add --%s auto or always", setting.ScreenshotKey, setting.RenderKey)
	case (len(j.Crawl.Shots) > 0 || j.Crawl.PrintPDF) && !slices.Contains(j.Formats, job.WARC):
		return usagef("--%s and --pdf are stored in WARC files: add warc to --format", setting.ScreenshotKey)
	case j.Crawl.OutageWait < 0:
		return usagef("--outage-wait cannot be negative")
	case j.Crawl.Pages < 0 || j.Crawl.PagesPerHost < 0 || j.Crawl.Time < 0 || j.Crawl.Rate < 0:
		return usagef("a limit cannot be negative")
	case j.Crawl.NoTraps && domainBoundFlag(&j.Crawl) != "":
		return usagef("--no-traps does not go with --%s, which it lifts: leave it out, or give it with 0",
			domainBoundFlag(&j.Crawl))
	case o.Verbose && o.Quiet:
		return usagef("--verbose and --quiet cannot be combined")
	}
	return nil
}

const minMemory = 1 << 20

func isContact(text string) bool {
	if u, err := url.Parse(text); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		return u.Host != ""
	}
	a, err := mail.ParseAddress(strings.TrimPrefix(text, "mailto:"))
	return err == nil && a.Name == ""
}

// domainBoundFlag returns the flag of a domain limit that is set.
func domainBoundFlag(c *crawl.Config) string {
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

func parseRecrawl(intervals []string, due bool) (r policy.Recrawl, err error) {
	for _, text := range intervals {
		i, err := policy.ParseInterval(text)
		if err != nil {
			return r, usagef("--recrawl: %v", err)
		}
		r.Intervals = append(r.Intervals, i)
	}
	r.Continuous = len(intervals) > 0 && !due
	if due && len(intervals) == 0 {
		r.Intervals = []policy.Interval{policy.DefaultInterval()}
	}
	return r, nil
}

func parseHeaders(lines []string) (http.Header, error) {
	h := http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t") || hasControl(line) {
			return nil, usagef("--header %q: want NAME: VALUE", line)
		}
		if err := fetch.CheckField(name, strings.TrimSpace(value)); err != nil {
			return nil, usagef("--header %s: %v", name, err)
		}
		h.Add(name, strings.TrimSpace(value))
	}
	return h, nil
}

func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }

// loadLogins reads the file for each run, because it may have changed. Commands that only inspect a crawl do not log
// in.
func (o *options) loadLogins() (*login.Config, error) {
	if o.Login == "" || o.noFetch {
		return nil, nil
	}
	c, err := login.Load(o.Login)
	if err != nil {
		return nil, usagef("--login: %w", err)
	}
	if o.Job.NoCookies {
		return nil, usagef("--login cannot be combined with --no-cookies: a login needs cookies")
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
