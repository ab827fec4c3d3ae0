// Package wire makes a crawl of what a user asked for: it is the one place that chooses which implementation stands behind an
// interface, and that puts the parts together. The command and the library both go through it.
package wire

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	"kumo/internal/crawl"
	"kumo/internal/fetch"
	"kumo/internal/frontier"
	"kumo/internal/page"
	"kumo/internal/weburl"
)

// Version is kumo's version.
const Version = "0.1.0"

// Agent is the product token that robots.txt files know kumo by.
const Agent = "kumo"

// A Job is one crawl, as the user asked for it.
type Job struct {
	Name  string   // default: the first seed's host
	Dir   string   // the crawl's folder; "" keeps nothing on disk
	Seeds []string // URLs; "https://" is put before what has no scheme

	Scope       weburl.Mode
	ScriptPaths bool   // take what looks like a path in a script for a link
	Contact     string // a URL or mail address for the site's owner, part of the default user agent
	BlockFile   string
	Formats     []string // "warc", "jsonl"
	WARCSize    int64
	Compress    string // "gzip" or "zstd"
	Fresh       bool   // forget an earlier crawl in the same folder

	Memory   int64 // bytes for queues and known URLs, of which there may be more on the disk; a third of the machine's
	Crawl    crawl.Config
	Frontier frontier.Config
	Fetch    fetch.Config

	// Text gives a page's main text for text.jsonl; nil if nobody wants it. It is the caller's, so that a program that imports kumo
	// and wants no texts does not carry what finds them.
	Text func(*page.Response, *page.Page) (*page.MainText, error)

	Settings []Setting // in effect, without secrets, for config.yaml and warcinfo
	Listener crawl.Listener
	Warn     func(error) // told what is wrong but does not stop the crawl
}

// A JobError says what is wrong with a job, before anything was done.
type JobError struct{ err error }

func (e *JobError) Error() string { return e.err.Error() }
func (e *JobError) Unwrap() error { return e.err }

func badJob(format string, args ...any) error { return &JobError{fmt.Errorf(format, args...)} }

// A Setting is one of the settings in effect.
type Setting struct {
	Key    string
	Values []string
}

// UserAgent is the default User-Agent.
func UserAgent(contact string) string {
	if contact == "" {
		return fmt.Sprintf("Mozilla/5.0 (compatible; %s/%s)", Agent, Version)
	}
	return fmt.Sprintf("Mozilla/5.0 (compatible; %s/%s; +%s)", Agent, Version, contact)
}

// Fix fills in what follows from other fields, and says what is wrong with the job. It is called by Open, and by who wants
// to know the job as it will be.
func (j *Job) Fix() ([]weburl.URL, error) {
	seeds, err := ParseSeeds(j.Seeds)
	if err != nil {
		return nil, err
	}
	if j.Name == "" && len(seeds) > 0 {
		j.Name = nameOf(seeds[0])
	}
	if j.Fetch.UserAgent == "" {
		j.Fetch.UserAgent = UserAgent(j.Contact)
	}
	if j.Warn == nil {
		j.Warn = func(error) {}
	}
	if len(j.Formats) == 0 {
		j.Formats = []string{"warc", "jsonl"}
	}
	for _, f := range j.Formats {
		if f != "warc" && f != "jsonl" {
			return nil, badJob("format %q: kumo writes warc and jsonl", f)
		}
	}
	if len(j.Name) > maxName || strings.HasPrefix(j.Name, ".") || strings.ContainsAny(j.Name, `/\`) ||
		strings.ContainsFunc(j.Name, unicode.IsControl) {
		return nil, badJob("name %q: it is part of file names, so it has at most %d bytes and no slashes, and does not begin with a dot",
			j.Name, maxName)
	}
	j.Fetch.PerHost = max(1, j.Frontier.PerHost)
	if ordinary := int64(32 << 20); j.Fetch.MaxBody > 0 && j.Fetch.MaxBody != ordinary {
		j.Crawl.MaxSitemap = j.Fetch.MaxBody // as the user has it
	}
	if j.Scope == weburl.ScopePage {
		j.Crawl.Sitemaps = crawl.SitemapsIgnored // nothing that one lists would be in scope
	}
	return seeds, nil
}

// workers is how many goroutines fetch: enough that every host that is worked on can have all its connections.
func (j *Job) workers() int {
	hosts := j.Frontier.Hosts
	if hosts <= 0 {
		hosts = 64
	}
	return min(hosts*max(1, j.Frontier.PerHost), maxWorkers)
}

const (
	maxWorkers = 100_000
	maxName    = 100
)

var unsafeInNames = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// nameOf makes a crawl's name of a seed's host.
func nameOf(seed weburl.URL) string {
	return strings.Trim(unsafeInNames.ReplaceAllString(seed.Host(), "-"), "-.")
}

// ParseSeeds reads seeds as a user types them, each once.
func ParseSeeds(raw []string) ([]weburl.URL, error) {
	seeds := make([]weburl.URL, 0, len(raw))
	met := make(map[weburl.URL]bool, len(raw))
	for _, s := range raw {
		u, err := parseSeed(s)
		if err != nil {
			return nil, badJob("seed %q: %w", s, err)
		}
		if !met[u] {
			seeds = append(seeds, u)
		}
		met[u] = true
	}
	return seeds, nil
}

var (
	schemeLike = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:(//|[^0-9/])`)
	localLike  = regexp.MustCompile(`^(localhost|[0-9.]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?(/|$)`)
)

// ParseURL reads one URL as a user types it.
func ParseURL(raw string) (weburl.URL, error) {
	u, err := parseSeed(raw)
	if err != nil {
		return u, badJob("URL %q: %w", raw, err)
	}
	return u, nil
}

func parseSeed(s string) (weburl.URL, error) {
	switch {
	case schemeLike.MatchString(s):
	case localLike.MatchString(s):
		s = "http://" + s // few have a certificate for an address
	default:
		s = "https://" + s
	}
	u, err := weburl.Parse(s)
	switch {
	case err != nil:
		return u, err
	case u.Scheme() != "http" && u.Scheme() != "https":
		return u, fmt.Errorf("kumo crawls http and https, not %s", u.Scheme())
	case u.HasUser():
		return u, fmt.Errorf("a name or password in a URL ends up in logs: give them with --user and --password")
	}
	return u.Canonical(), nil
}

func (j *Job) now() time.Time {
	if j.Crawl.Now != nil {
		return j.Crawl.Now()
	}
	return time.Now()
}
