// Package wire makes a crawl of what a user asked for: it is the one place that chooses which implementation stands
// behind an interface, and that puts the parts together. The command and the library both go through it.
package wire

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	"kumo/internal/advice"
	"kumo/internal/crawl"
	"kumo/internal/fetch"
	"kumo/internal/frontier"
	"kumo/internal/page"
	"kumo/internal/policy"
	"kumo/internal/seeds"
	"kumo/internal/settings"
	"kumo/internal/weburl"
)

// Version is kumo's version.
const Version = "0.1.0"

// Agent is the product token that robots.txt files know kumo by.
const Agent = "kumo"

// A Job is one crawl, as the user asked for it.
type Job struct {
	Name  string      // default: the first seed's host
	Dir   string      // the crawl's folder; "" keeps nothing on disk
	Seeds []string    // URLs; "https://" is put before what has no scheme
	File  *seeds.File // more seeds; nil: there are none. The caller closes it

	Scope       weburl.Mode
	ScriptPaths bool   // take what looks like a path in a script for a link
	Contact     string // a URL or mail address for the site's owner, part of the default user agent
	BlockFile   string
	Formats     []string // "warc", "jsonl"
	WARCSize    int64
	Compress    string // "gzip" or "zstd"
	Fresh       bool   // forget an earlier crawl in the same folder
	Moved       bool   // WARC files that are no longer in the folder were moved on purpose

	Memory   int64 // bytes for queues and known URLs, of which there may be more on the disk; a third of the machine's
	Crawl    crawl.Config
	Frontier frontier.Config
	Fetch    fetch.Config

	// Text gives a page's main text for text.jsonl; nil if nobody wants it. It is the caller's, so that a program that
	// imports kumo and wants no texts does not carry what finds them.
	Text func(*page.Response, *page.Page) (*page.MainText, error)

	Settings []settings.Setting // in effect, without secrets, for config.yaml and warcinfo
	Listener crawl.Listener
	Warn     func(error) // told what is wrong but does not stop the crawl
}

// UserAgent is the default User-Agent.
func UserAgent(contact string) string {
	if contact == "" {
		return fmt.Sprintf("Mozilla/5.0 (compatible; %s/%s)", Agent, Version)
	}
	return fmt.Sprintf("Mozilla/5.0 (compatible; %s/%s; +%s)", Agent, Version, contact)
}

// UserAgent is the one in effect: what the user has set, or else what follows from the contact.
func (j *Job) UserAgent() string {
	if j.Fetch.UserAgent != "" {
		return j.Fetch.UserAgent
	}
	return UserAgent(j.Contact)
}

// fetching is how the job fetches.
func (j *Job) fetching() fetch.Config {
	cfg := j.Fetch
	cfg.UserAgent = j.UserAgent()
	return cfg
}

// Fix fills in what follows from other fields, and says what is wrong with the job. It is called by Open, and by who
// wants to know the job as it will be.
func (j *Job) Fix() ([]weburl.URL, error) {
	seeds, err := seeds.Parse(j.Seeds)
	if err != nil {
		return nil, err
	}
	if j.Name == "" {
		j.Name = j.defaultName(seeds)
	}
	if j.Warn == nil {
		j.Warn = func(error) {}
	}
	if len(j.Formats) == 0 {
		j.Formats = []string{"warc", "jsonl"}
	}
	for _, f := range j.Formats {
		if f != "warc" && f != "jsonl" {
			return nil, advice.Usage("format %q: kumo writes warc and jsonl", f)
		}
	}
	if len(j.Name) > maxName || strings.HasPrefix(j.Name, ".") || strings.ContainsAny(j.Name, `/\`) ||
		strings.ContainsFunc(j.Name, unicode.IsControl) {
		return nil, advice.Usage("name %q: it is part of file names, so it has at most %d bytes and no slashes, and does "+
			"not begin with a dot",
			j.Name, maxName)
	}
	j.Fetch.PerHost = max(1, j.Frontier.PerHost)
	if ordinary := int64(32 << 20); j.Fetch.MaxBody > 0 && j.Fetch.MaxBody != ordinary {
		j.Crawl.MaxSitemap = j.Fetch.MaxBody // as the user has it
	}
	if j.Scope == weburl.ScopePage {
		j.Crawl.Sitemaps = policy.SitemapsIgnored // nothing that one lists would be in scope
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

// defaultName is that of the first seed, "" where there is none.
func (j *Job) defaultName(seeds []weburl.URL) string {
	if len(seeds) > 0 {
		return nameOf(seeds[0])
	}
	if j.File != nil && len(j.File.First) > 0 {
		if u, err := weburl.Parse(j.File.First[0]); err == nil {
			return nameOf(u)
		}
	}
	return ""
}

// HasSeeds reports whether the job names any.
func (j *Job) HasSeeds() bool { return len(j.Seeds) > 0 || j.File != nil && j.File.Count > 0 }

// nameOf makes a crawl's name of a seed's host.
func nameOf(seed weburl.URL) string {
	return strings.Trim(unsafeInNames.ReplaceAllString(seed.Host(), "-"), "-.")
}

func (j *Job) now() time.Time {
	if j.Crawl.Now != nil {
		return j.Crawl.Now()
	}
	return time.Now()
}
