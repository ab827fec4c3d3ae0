// Package wire makes a crawl of what a user asked for: it is the one place that chooses which implementation stands behind an
// interface, and that puts the parts together. The command and the library both go through it.
package wire

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"kumo/internal/crawl"
	"kumo/internal/fetch"
	"kumo/internal/frontier"
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

	Scope     weburl.Mode
	Contact   string // a URL or mail address for the site's owner, part of the default user agent
	BlockFile string
	Formats   []string // "warc", "jsonl"
	WARCSize  int64
	Compress  string // "gzip" or "zstd"
	Fresh     bool   // forget an earlier crawl in the same folder

	Crawl    crawl.Config
	Frontier frontier.Config
	Fetch    fetch.Config

	Settings []Setting // in effect, without secrets, for config.yaml and warcinfo
	Listener crawl.Listener
	Warn     func(error) // told what is wrong but does not stop the crawl
}

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
			return nil, fmt.Errorf("format %q: kumo writes warc and jsonl", f)
		}
	}
	j.Frontier.PerHost = max(1, j.Frontier.PerHost)
	j.Fetch.PerHost = j.Frontier.PerHost
	j.Frontier.Tries = j.Crawl.Tries
	return seeds, nil
}

// workers is how many goroutines fetch: enough that every host that is worked on can have all its connections.
func (j *Job) workers() int {
	hosts := j.Frontier.Hosts
	if hosts <= 0 {
		hosts = 64
	}
	return min(hosts*j.Frontier.PerHost, maxWorkers)
}

const maxWorkers = 100_000

var unsafeInNames = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// nameOf makes a crawl's name of a seed's host.
func nameOf(seed weburl.URL) string {
	return strings.Trim(unsafeInNames.ReplaceAllString(seed.Host(), "-"), "-.")
}

// ParseSeeds reads seeds as a user types them.
func ParseSeeds(raw []string) ([]weburl.URL, error) {
	var seeds []weburl.URL
	for _, s := range raw {
		u, err := parseSeed(s)
		if err != nil {
			return nil, fmt.Errorf("seed %q: %w", s, err)
		}
		if !slices.Contains(seeds, u) {
			seeds = append(seeds, u)
		}
	}
	return seeds, nil
}

var schemeLike = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:(//|[^0-9/])`)

func parseSeed(s string) (weburl.URL, error) {
	if !schemeLike.MatchString(s) {
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
