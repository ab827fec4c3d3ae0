// Package job defines a crawl as requested by the user. It holds the settings, derives values from them, and divides
// memory and open files among the parts of the crawl.
package job

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
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

// What Job.Formats may name.
const (
	WARC  = "warc"
	JSONL = "jsonl"
)

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
	Block       []string // rules of what is not to be fetched, as a block file has them
	Formats     []string // WARC, JSONL
	WARCSize    int64
	Compress    string // "gzip" or "zstd"
	Fresh       bool   // set an earlier crawl in the same folder aside, into a folder in it
	Discard     bool   // with Fresh: remove it instead
	Moved       bool   // WARC files that are no longer in the folder were moved on purpose

	Memory   int64  // bytes for queues and known URLs, of which there may be more on the disk; a third of the machine's
	Order    string // one of Orders; "" is the first
	Crawl    crawl.Config
	Frontier frontier.Config
	Fetch    fetch.Config

	Hooks      crawl.Hooks   // of who runs the job
	AnchorText bool          // read the text of anchors, for Hooks.Link
	Stores     []store.Store // beside those that follow from Formats; who runs the job opens and closes them

	Logins    *login.Config // nil: the crawl is nobody to the sites
	NoCookies bool          // what servers set is not kept; or else Fetch.Jar has it

	// Text gives a page's main text for text.jsonl; nil if nobody wants it. What finds it is the caller's
	// to link.
	Text func(*page.Response, *page.Page) (*page.MainText, error)

	Fields *Fields // nil: nobody wants records of pages

	Filters *Filters // nil: no program is asked; Hooks ask them
	Upload  *Upload  // nil: record files stay in the folder
	// how far each sink is that is sent the records; nil: there are none
	Sinks func() []stats.Sink

	Settings []settings.Setting // in effect, without secrets, for config.yaml and warcinfo
	Listener crawl.Listener
	// makes the job anew with some settings changed, and keeps that if apply takes it; nil: none can be while it runs
	Change func(changes []settings.Setting, apply func(*Job) error) error

	Warn func(error) // told what is wrong but does not stop the crawl

	overriding *overrideState // nil: there are no overrides
}

// Fields make records of pages for fields.jsonl, by rules. What reads pages is the caller's to link.
type Fields struct {
	Read func(*page.Response, *page.Page) ([]page.Fields, error)
	// is told what earlier runs have counted, before the run
	Restore func([]stats.FieldCounts)
	Counts  func() []stats.FieldCounts
}

// Filters are programs that are asked about links, requests and records.
type Filters struct {
	Records bool // they may add to fields.jsonl
	// is told what earlier runs have counted, before the run
	Restore func([]stats.FilterCounts)
	Counts  func() []stats.FilterCounts
}

// Upload has record files brought to a place. What does so is the caller's to link.
type Upload struct {
	// Overlay makes of the disk that has the folder, which is held by now, one that has what is in the place, too.
	Overlay func(vfs.FS) (vfs.FS, error)
	// Closed is called when a WARC file got its final name. It does not wait.
	Closed func()
	// Durable is told how long files are that grow, as far as the journal has that: before the crawl goes on, and then
	// before any WARC file is closed. It does not wait; nil: nobody wants to know.
	Durable func([]store.Mark)
	// Status says what is there, and what waits.
	Status func() stats.Uploads
}

// UserAgent is the one in effect: what the user has set, or else what follows from the contact.
func (j *Job) UserAgent() string {
	if j.Fetch.UserAgent != "" {
		return j.Fetch.UserAgent
	}
	return UserAgent(j.Contact)
}

// FetchConfig is how the job fetches.
func (j *Job) FetchConfig() fetch.Config {
	cfg := j.Fetch
	cfg.UserAgent = j.UserAgent()
	if j.overriding != nil {
		cfg.HostProxies = j.proxiesOf
	}
	cfg.OnProxyChange = func(proxy string, err error) {
		if err != nil {
			j.Warn(fmt.Errorf("the proxy %s is left out for a while, and its hosts go through others: %w", proxy, err))
		} else {
			j.Warn(fmt.Errorf("the proxy %s works again", proxy))
		}
	}
	return cfg
}

// Normalize fills in what follows from other fields, and says what is wrong with the job. It is called when a crawl is
// opened, and by who wants to know the job as it will be.
func (j *Job) Normalize() ([]weburl.URL, error) {
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
		j.Formats = []string{WARC, JSONL}
	}
	for _, f := range j.Formats {
		if f != WARC && f != JSONL {
			return nil, advice.Usage("format %q: kumo writes %s and %s", f, WARC, JSONL)
		}
	}
	if len(j.Name) > maxName || strings.HasPrefix(j.Name, ".") || strings.ContainsAny(j.Name, `/\`) ||
		strings.ContainsFunc(j.Name, unicode.IsControl) {
		return nil, advice.Usage("name %q: it is part of file names, so it has at most %d bytes and no slashes, and does "+
			"not begin with a dot",
			j.Name, maxName)
	}
	if err := j.checkLookups(); err != nil {
		return nil, err
	}
	j.Fetch.PerHost = max(j.maxPerHost(), j.Frontier.Slices)
	if ordinary := int64(32 << 20); j.Fetch.MaxBody > 0 && j.Fetch.MaxBody != ordinary {
		j.Crawl.MaxSitemap = j.Fetch.MaxBody // as the user has it
	}
	if j.Scope == weburl.ScopePage {
		j.Crawl.Sitemaps = policy.SitemapsIgnored // nothing that one lists would be in scope
	}
	return seeds, nil
}

// checkLookups refuses so few look-ups a second that the last of the hosts that are worked on at once would have to
// wait for its address for most of the time that a visit may take.
func (j *Job) checkLookups() error {
	perSecond, hosts := j.Fetch.LookupRate, j.HostsAtOnce()
	if perSecond < 0 {
		return advice.Usage("--rate-dns %v: a number of names a second is wanted, or 0 for any", perSecond)
	}
	longest := j.Fetch.LongestExchange().Seconds() / 2
	if perSecond > 0 && float64(hosts) > perSecond*longest {
		return advice.Usage("--rate-dns %v with %d hosts at once: the last would wait longer for its address than a visit "+
			"may take; let it be %.2g or more, or --concurrency %d or less", perSecond, hosts, float64(hosts)/longest+0.005,
			max(1, int(perSecond*longest)))
	}
	return nil
}

// Writes reports whether the crawl writes a format.
func (j *Job) Writes(format string) bool {
	return len(j.Formats) == 0 || slices.Contains(j.Formats, format)
}

// Workers is how many goroutines fetch: enough that every host that is worked on can have all its connections.
func (j *Job) Workers() int {
	hosts, each := j.HostsAtOnce(), j.perHost()
	more := min(hosts*(j.maxPerHost()-each), maxExtraWorkers) // for hosts that may have more than others
	return min(hosts*each+more, maxWorkers)
}

// HostsAtOnce is how many hosts are worked on at once.
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

// HasSeeds reports whether the job names any.
func (j *Job) HasSeeds() bool { return len(j.Seeds) > 0 || j.File != nil && j.File.Count > 0 }

// ErrNoSeeds is a new crawl without a URL to begin with.
var ErrNoSeeds = errors.New("no URL to begin with: name one, or give a file of them with --input-file")

// NoSeedsError is ErrNoSeeds for a folder in which there is no crawl to go on with.
func NoSeedsError(dir string) error {
	return fmt.Errorf("there is no crawl in %s, and %w", dir, ErrNoSeeds)
}

// LimitKey is the setting that bounds the pages of all nodes together.
const LimitKey = "limit"

// LimitOf is the limit of a crawl with some settings; 0: none.
func LimitOf(all map[string][]string) int64 {
	n, _ := strconv.ParseInt(strings.Join(all[LimitKey], ""), 10, 64)
	return n
}

// BlockKey is the setting of what is not to be fetched.
const BlockKey = "block"

// NameOf makes a crawl's name of a seed's host.
func NameOf(seed weburl.URL) string {
	return strings.Trim(SafeName(weburl.FileNamePart(seed.Hostname())+":"+seed.Port()), "-.")
}

// SafeName makes of a text a part of a file's name.
func SafeName(s string) string { return unsafeInNames.ReplaceAllString(s, "-") }

var unsafeInNames = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// Now is the time by the job's clock.
func (j *Job) Now() time.Time {
	if j.Crawl.Now != nil {
		return j.Crawl.Now()
	}
	return time.Now()
}

// Version is kumo's version.
const Version = settings.Version

// Agent is the product token that robots.txt files know kumo by.
const Agent = "kumo"

// UserAgent is the default User-Agent.
func UserAgent(contact string) string {
	if contact == "" {
		return fmt.Sprintf("Mozilla/5.0 (compatible; %s/%s)", Agent, Version)
	}
	return fmt.Sprintf("Mozilla/5.0 (compatible; %s/%s; +%s)", Agent, Version, contact)
}

// The settings of the guard against traps: that there is none, and the patterns of URLs that are fetched all the same.
// Both may also be taken back.
const (
	NoTrapsKey     = "no-traps"
	ReleaseTrapKey = "release-trap"
)

// FieldsKey is the setting that names the rules for records. Other rules may take their place, for pages that come
// then; there is no way back to none.
const FieldsKey = "fields"

// Bound is a bound that a person gives, as a crawl's Config has it: negative where it is 0, without limit.
func Bound(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

// NoLimit is how a depth is written that has none.
const NoLimit = "unlimited"
