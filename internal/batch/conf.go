package batch

import (
	"context"
	"fmt"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/batch/collection"
	"kumo/internal/content/document"
	"kumo/internal/content/fetch"
	"kumo/internal/content/parse"
	"kumo/internal/content/policy"
)

// A Conf defines a job: plain data, the same in every process that runs one of its tasks. It can be encoded as JSON.
type Conf struct {
	Job   string    // one of the constants below
	Date  string    // the day, 2026-11-21
	Round int       // from 0
	Start time.Time // when the job was started

	Collections []*collection.Collection // those that share the job
	Reducers    int                      // number of partitions

	// Moved maps the code of a collection to the redirects of its seeds, by URL. Redirect targets are in scope like
	// seeds.
	Moved map[string]map[string]string
	// Began is when the day was started: older robots.txt failures are requested again.
	Began time.Time

	Hosts    map[string]int // crawl: partitions of the hosts that take longest; others are assigned by hash
	Rules    []string       // crawl: files with the day's robots.txt answers
	Fetching Fetching       // crawl only
}

// Names of jobs.
const (
	JobCrawl    = "crawl"
	JobParse    = "parse"
	JobOptimize = "optimize"
	JobMerge    = "merge"
	JobXML      = "xml"
)

// Fetching are a crawl's fetch settings, the same for all collections.
type Fetching struct {
	Agent     string        // name in robots.txt files
	UserAgent string        // header field
	Timeout   time.Duration // see fetch.Config
	MaxBody   int64         // maximum size of an answer in bytes; default 32 MiB
	Tries     int           // attempts per URL; default 3
	MaxWait   time.Duration // maximum back-off of a host after failures or at its request; default 5m
	// minimum time between requests to an address that several hosts of a task share
	AddressDelay time.Duration

	Documents bool // read PDFs, office documents and e-books: their text and links

	AllowPrivate bool
	InsecureTLS  bool
	// see fetch.Config
	PostQuantumTLS, LegacyTLS bool
	Resolve                   []string
	DNSServer                 string
}

func (f *Fetching) config() fetch.Config {
	return fetch.Config{UserAgent: f.UserAgent, Timeout: f.Timeout, MaxBody: f.MaxBody, PerHost: 1,
		AllowPrivate: f.AllowPrivate, InsecureTLS: f.InsecureTLS,
		PostQuantumTLS: f.PostQuantumTLS, LegacyTLS: f.LegacyTLS, Resolve: f.Resolve, DNSServer: f.DNSServer}
}

// Deps are a job's dependencies on its process.
type Deps struct {
	Place place.Place // contains the files of Conf.Rules
	// Text extracts a page's main text. If nil, no text is extracted, and languages are detected from the first
	// sentences.
	Text func(*page.Response, *page.Page) (*page.MainText, error)
	Now  func() time.Time // default time.Now
	// Documents reads documents; nil: they have neither text nor links.
	Documents document.Reader
}

// decodes reports whether the bodies of a media type are decoded.
func (s *setup) decodes(mediaType string) bool {
	return parse.Readable(mediaType) || s.readsDocuments() && document.MayBe(mediaType)
}

func (s *setup) readsDocuments() bool { return s.Documents != nil && s.Fetching.Documents }

// shown returns the HTML form of a response that is a document; nil if it is none.
func (s *setup) shown(ctx context.Context, resp *page.Response) *page.Response {
	if !s.readsDocuments() || !document.MayBe(parse.MediaType(resp.Header.Get("Content-Type"))) {
		return nil
	}
	d := document.ReadResponse(resp, func(f document.File) (*document.Document, error) {
		return s.Documents.Read(ctx, f, document.Default())
	})
	if d == nil {
		return nil
	}
	return d.Shown(resp)
}

// NewJob creates a job.
func NewJob(conf *Conf, deps Deps) (*Job, error) {
	s, err := newSetup(conf, deps)
	if err != nil {
		return nil, err
	}
	switch conf.Job {
	case JobCrawl:
		return s.crawl(), nil
	case JobParse:
		return s.parse(), nil
	case JobOptimize:
		return s.optimize(), nil
	case JobMerge:
		return s.merge(), nil
	case JobXML:
		return s.xml(), nil
	}
	return nil, fmt.Errorf("unknown job %q", conf.Job)
}

func newSetup(conf *Conf, deps Deps) (*setup, error) {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	s := &setup{Conf: conf, Deps: deps, members: map[string]*member{}}
	for _, c := range conf.Collections {
		m := &member{Collection: c, moved: reachedBySeeds(c.Seeds, conf.Moved[c.Code])}
		var err error
		if m.rules, err = rulesOf(c, m.moved); err == nil {
			m.recrawl, err = c.Intervals()
		}
		if err == nil && conf.Job == JobXML {
			m.extractor, err = newFieldExtractor(c, conf.Fetching.Agent)
		}
		if err != nil {
			return nil, fmt.Errorf("collection %s: %w", c.Code, err)
		}
		m.isSeed = map[string]bool{}
		for _, seed := range c.Seeds {
			m.isSeed[seed] = true
		}
		for _, to := range m.moved {
			m.isSeed[to] = true
		}
		s.members[c.Code] = m
	}
	return s, nil
}

// rulesOf returns the rules of a collection. Redirect targets of seeds are in scope like seeds.
func rulesOf(c *collection.Collection, moved map[string]string) (*policy.Rules, error) {
	rules, err := c.Rules()
	if err != nil {
		return nil, err
	}
	for _, to := range moved {
		if u, err := weburl.Parse(to); err == nil {
			rules.Scope.AddSeed(u)
		}
	}
	return rules, nil
}

// A setup is the immutable state shared by the functions of a job.
type setup struct {
	*Conf
	Deps
	members map[string]*member // by collection code
}

// A member is a collection with its derived state.
type member struct {
	*collection.Collection
	rules     *policy.Rules
	recrawl   *policy.Recrawl
	isSeed    map[string]bool
	moved     map[string]string // seed → redirect target
	extractor *fieldExtractor   // job xml only; nil: the collection has no field rules
}

// member returns the collection with a code. Records of other collections do not belong to this job.
func (s *setup) member(code string) (*member, error) {
	m := s.members[code]
	if m == nil {
		return nil, fmt.Errorf("record of collection %q, which is not part of the job", code)
	}
	return m, nil
}

// route places a record by its kind.
func (s *setup) route(key, value []byte) Route {
	kind := KindOf(value)
	if kind == KindRobots {
		return Route{Folder: RobotsFolder}
	}
	code, _, err := SplitKey(key)
	m := s.members[code]
	if err != nil || m == nil {
		return Route{Folder: "lost"} // unreachable: keys are made by Key, for collections of the job
	}
	return Route{Folder: m.Directory + "/" + folders[kind], Format: formats[kind]}
}

// RobotsFolder is the folder of robots.txt answers in a storage location. It is shared by all collections.
const RobotsFolder = "robots"

// folders maps kinds of records to their folder below the collection's.
var folders = map[Kind]string{KindInURL: "in", KindDocument: "doc", KindOutLinks: "out", KindKnown: "known",
	KindMove: "moved", KindPage: "xml", KindOther: "other",
	KindFields: FieldsFolder, KindTally: tallyFolder}

var formats = map[Kind]Format{KindPage: XML, KindOther: XML, KindFields: Lines, KindTally: Lines}

// count adds to a counter of a collection.
func (m *member) count(t *Task, name string, n int64) { t.Count(m.Code, name, n) }
