// Package job defines a crawl as requested by the user. It holds the settings, derives values from them, and divides
// memory and open files among the parts of the crawl.
package job

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"kumo/internal/base/advice"
	"kumo/internal/base/page"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/login"
	"kumo/internal/content/policy"
	"kumo/internal/engine/crawl"
	"kumo/internal/engine/seeds"
	"kumo/internal/state/frontier"
	"kumo/internal/state/store"
)

// The values of Job.Formats.
const (
	WARC  = "warc"
	JSONL = "jsonl"
)

// A Job is a crawl as requested by the user.
type Job struct {
	Name  string      // default: the first seed's host
	Dir   string      // the crawl's folder; "": nothing is stored on disk
	Seeds []string    // URLs; without a scheme, https:// is assumed
	File  *seeds.File // more seeds, or nil; the caller closes it

	Share int // weight among the crawls of a node; 0: 1

	Scope       weburl.Mode
	ScriptPaths bool   // treat strings in scripts that look like paths as links
	Contact     string // URL or mail address for site owners, part of the default user agent
	BlockFile   string
	Block       []string // block rules, in the syntax of a block file
	Formats     []string // WARC, JSONL
	WARCSize    int64
	Compress    string // "gzip" or "zstd"
	Fresh       bool   // move an earlier crawl in the folder into a subfolder
	Discard     bool   // with Fresh: remove it instead
	Moved       bool   // missing WARC files were moved on purpose

	Memory   int64  // bytes for queues and known URLs; the rest is on disk; 0: a third of the machine's memory
	Order    string // one of Orders; "": the first
	Crawl    crawl.Config
	Frontier frontier.Config
	Fetch    fetch.Config

	Hooks      crawl.Hooks   // supplied by the caller
	AnchorText bool          // read anchor texts, for Hooks.Link
	Stores     []store.Store // in addition to those of Formats; the caller opens and closes them

	Logins    *login.Config // nil: no logins
	NoCookies bool          // discard cookies set by servers; otherwise they are in Fetch.Jar

	// Text extracts a page's main text for text.jsonl; nil: no text.jsonl. The caller supplies the implementation, so
	// that package job does not link it.
	Text func(*page.Response, *page.Page) (*page.MainText, error)

	// Renderer runs the scripts of pages; nil: none are run. The caller supplies the implementation. The session closes
	// it.
	Renderer crawl.Renderer

	// Documents reads PDFs, office documents, e-books and images; nil: they are not read. The caller supplies the
	// implementation. The session closes it.
	Documents crawl.DocumentReader

	Fields *Fields // nil: no records

	Filters *Filters // nil: no filters; Hooks call them
	Upload  *Upload  // nil: record files stay in the folder
	// Sinks returns the progress of each sink; nil: there are none.
	Sinks func() []stats.Sink

	Settings []settings.Setting // in effect, without secrets, for config.yaml and warcinfo
	Listener crawl.Listener
	// Change builds the job with some settings changed, and replaces the old one if apply succeeds; nil: settings
	// cannot change during the run.
	Change func(changes []settings.Setting, apply func(*Job) error) error

	Warn func(error) // receives problems that do not stop the crawl

	overriding *overrideState // nil: no overrides
}

// Fields extracts records from pages by rules, for fields.jsonl. The caller supplies the implementation.
type Fields struct {
	Read func(*page.Response, *page.Page) ([]page.Fields, error)
	// Rules returns the rules that apply to a URL.
	Rules func(url string) []page.FieldRule
	// Called before the run with the counts of earlier runs.
	Restore func([]stats.FieldCounts)
	Counts  func() []stats.FieldCounts
}

// Filters are external programs that filter links, requests and records.
type Filters struct {
	Records bool // filters may add records to fields.jsonl
	// Called before the run with the counts of earlier runs.
	Restore func([]stats.FilterCounts)
	Counts  func() []stats.FilterCounts
}

// Upload connects the crawl with the upload of its record files. The caller supplies the implementation.
type Upload struct {
	// Overlay returns the disk extended by the uploaded files. The crawl's folder is locked when it is called.
	Overlay func(vfs.FS) (vfs.FS, error)
	// Closed is called when a WARC file gets its final name. It must not block.
	Closed func()
	// Durable is called with the committed lengths of growing files: before the crawl resumes, and then before any WARC
	// file is closed. It must not block; it may be nil.
	Durable func([]store.Mark)
	// Status returns the state of the upload.
	Status func() stats.Uploads
}

// UserAgent returns the user agent in effect: the user's, or the default with the contact.
func (j *Job) UserAgent() string {
	if j.Fetch.UserAgent != "" {
		return j.Fetch.UserAgent
	}
	return UserAgent(j.Contact)
}

// FetchConfig returns the configuration of the fetcher.
func (j *Job) FetchConfig() fetch.Config {
	cfg := j.Fetch
	cfg.UserAgent = j.UserAgent()
	if j.overriding != nil {
		cfg.HostProxies = j.proxiesOf
	}
	cfg.OnProxyChange = func(proxy string, err error) {
		if err != nil {
			j.Warn(fmt.Errorf("the proxy %s fails and is not used for a while; its hosts go through others: %w", proxy, err))
		} else {
			j.Warn(fmt.Errorf("the proxy %s works again", proxy))
		}
	}
	return cfg
}

// ShareKey is the setting with the crawl's weight among the crawls of a node.
const ShareKey = "share"

const maxShare = 1000

// Normalize fills in derived fields and validates the job. It is called when a crawl is opened, or to show the
// effective job.
func (j *Job) Normalize() ([]weburl.URL, error) {
	seeds, err := seeds.Parse(j.Seeds)
	if err != nil {
		return nil, err
	}
	if j.Name == "" {
		j.Name = j.defaultName(seeds)
	}
	if j.Share < 0 || j.Share > maxShare {
		return nil, advice.Usage("--share is %d: give a weight from 1 to %d", j.Share, maxShare)
	}
	if j.Warn == nil {
		j.Warn = func(error) {}
	}
	if len(j.Formats) == 0 {
		j.Formats = []string{WARC, JSONL}
	}
	for _, f := range j.Formats {
		if f != WARC && f != JSONL {
			return nil, advice.Usage("format %q: supported formats are %s and %s", f, WARC, JSONL)
		}
	}
	if len(j.Name) > maxName || strings.HasPrefix(j.Name, ".") || strings.ContainsAny(j.Name, `/\`) ||
		strings.ContainsFunc(j.Name, unicode.IsControl) {
		return nil, advice.Usage("name %q: it is part of file names, so it must have at most %d bytes, contain no slash, "+
			"and not begin with a dot",
			j.Name, maxName)
	}
	if err := j.checkLookups(); err != nil {
		return nil, err
	}
	j.Fetch.PerHost = max(j.maxPerHost(), j.Frontier.Slices)
	if ordinary := int64(32 << 20); j.Fetch.MaxBody > 0 && j.Fetch.MaxBody != ordinary {
		j.Crawl.MaxSitemap = j.Fetch.MaxBody // the user's setting
	}
	if j.Scope == weburl.ScopePage {
		j.Crawl.Sitemaps = policy.SitemapsIgnored // they could list nothing that is in scope
	}
	return seeds, nil
}

// checkLookups rejects a lookup rate so low that the last of the concurrent hosts would wait for its address for most
// of the time that a visit may take.
func (j *Job) checkLookups() error {
	perSecond, hosts := j.Fetch.LookupRate, j.HostsAtOnce()
	if perSecond < 0 {
		return advice.Usage("--rate-dns %v: give a number of lookups per second, or 0 for no limit", perSecond)
	}
	longest := j.Fetch.LongestExchange().Seconds() / 2
	if perSecond > 0 && float64(hosts) > perSecond*longest {
		return advice.Usage("--rate-dns %v with %d hosts at once: the last host would wait longer for its address than a "+
			"visit may take; use %.2g or more, or --concurrency %d or less", perSecond, hosts, float64(hosts)/longest+0.005,
			max(1, int(perSecond*longest)))
	}
	return nil
}

// Writes reports whether the crawl writes the format.
func (j *Job) Writes(format string) bool {
	return len(j.Formats) == 0 || slices.Contains(j.Formats, format)
}

// Workers returns the number of fetching goroutines: enough for all connections of all concurrent hosts.
func (j *Job) Workers() int {
	hosts, each := j.HostsAtOnce(), j.perHost()
	more := min(hosts*(j.maxPerHost()-each), maxExtraWorkers) // for hosts with more connections than others
	return min(hosts*each+more, maxWorkers)
}

// HostsAtOnce returns the number of hosts that are fetched from concurrently.
func (j *Job) HostsAtOnce() int {
	if j.Frontier.Hosts > 0 {
		return j.Frontier.Hosts
	}
	return 64
}

func (j *Job) perHost() int { return max(1, j.Frontier.PerHost) }

const (
	maxWorkers      = 100_000
	maxExtraWorkers = 1024
	maxName         = 100
)

func (j *Job) defaultName(seeds []weburl.URL) string {
	if len(seeds) > 0 {
		return NameOf(seeds[0])
	}
	if j.File != nil && len(j.File.First) > 0 {
		if u, err := weburl.Parse(j.File.First[0]); err == nil {
			return NameOf(u)
		}
	}
	return ""
}

// HasSeeds reports whether the job has any seeds.
func (j *Job) HasSeeds() bool { return len(j.Seeds) > 0 || j.File != nil && j.File.Count > 0 }

// ErrNoSeeds means that a new crawl has no seeds.
var ErrNoSeeds = errors.New("no seed URL: name one, or a file of them with --input-file")

// NoSeedsError returns an error that is ErrNoSeeds for a job that has no crawl to resume.
func (j *Job) NoSeedsError() error {
	switch {
	case j.File != nil:
		return emptyFileError(j.File.Title())
	case j.Dir == "" || j.Fresh:
		return ErrNoSeeds
	}
	return fmt.Errorf("there is no crawl in %s, and %w", j.Dir, ErrNoSeeds)
}

// An emptyFileError has the title of a file of seeds that has none.
type emptyFileError string

func (e emptyFileError) Error() string {
	return "--input-file " + string(e) + ": there is no URL in it: write one on each line"
}

// Is lets errors.Is find ErrNoSeeds.
func (e emptyFileError) Is(target error) bool { return target == ErrNoSeeds }

// BlockKey is the setting with the block rules.
const BlockKey = "block"

// NameOf returns a name for a crawl, derived from the host of a seed.
func NameOf(seed weburl.URL) string {
	return strings.Trim(SafeName(weburl.FileNamePart(seed.Hostname())+":"+seed.Port()), "-.")
}

// SafeName replaces characters that are not safe in file names.
func SafeName(s string) string { return unsafeInNames.ReplaceAllString(s, "-") }

var unsafeInNames = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// Now returns the time of the job's clock.
func (j *Job) Now() time.Time {
	if j.Crawl.Now != nil {
		return j.Crawl.Now()
	}
	return time.Now()
}

// Version is kumo's version.
const Version = settings.Version

// Agent is the product token of kumo in robots.txt files.
const Agent = "kumo"

// UserAgent returns the default User-Agent.
func UserAgent(contact string) string {
	if contact == "" {
		return fmt.Sprintf("Mozilla/5.0 (compatible; %s/%s)", Agent, Version)
	}
	return fmt.Sprintf("Mozilla/5.0 (compatible; %s/%s; +%s)", Agent, Version, contact)
}

// Settings that disable the detection of traps, and that release the URLs of suspected traps. Both may be reset.
const (
	NoTrapsKey     = "no-traps"
	ReleaseTrapKey = "release-trap"
)

// NearDuplicatesKey is the setting that records which page each page nearly equals.
const NearDuplicatesKey = "near-duplicates"

// FieldsKey is the setting that names the rules for records. The rules may be replaced, for pages fetched afterwards,
// but not removed.
const FieldsKey = "fields"

// SinkKey is the key of the setting with the sinks' URLs.
const SinkKey = "sink"

// CheckMeshSinks returns an error if a crawl with strategy mesh has sinks.
func CheckMeshSinks(urls []string) error {
	if len(urls) == 0 {
		return nil
	}
	return advice.With(advice.Usage("sinks cannot be used in a mesh crawl: when a node is lost, no other node knows "+
		"which of its records a sink has"), "use the strategy shard, hub or balance, or export each node's folder after the crawl")
}

// Bound converts a user's limit (0: none) to that of a crawl's Config (negative: none).
func Bound(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

// NoLimit is the text for an unlimited depth.
const NoLimit = "unlimited"
