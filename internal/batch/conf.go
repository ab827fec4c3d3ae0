package batch

import (
	"fmt"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/batch/collection"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
)

// A Conf is what a job is made from: plain data, the same in every process that runs a task of it. It can be written
// as JSON.
type Conf struct {
	Job   string    // one of the names below
	Date  string    // the day, 2026-11-21
	Round int       // from 0
	Start time.Time // when the job was begun

	Collections []*collection.Collection // that share the job
	Reducers    int                      // how many partitions there are

	// RedirectTo are by the code of a collection, by their URLs, where seeds redirect to. It is in scope as seeds are.
	Moved map[string]map[string]string
	// Began is when the day was begun: what robots.txt files did not answer before is asked for again.
	Began time.Time

	Hosts    map[string]int // crawl: the partitions of the hosts that take longest; others go by their hash
	Rules    []string       // crawl: files of the place with what robots.txt files have answered this day
	Fetching Fetching       // crawl
}

// The jobs.
const (
	JobCrawl    = "crawl"
	JobParse    = "parse"
	JobOptimize = "optimize"
	JobMerge    = "merge"
	JobXML      = "xml"
)

// Fetching says how a crawl fetches, whatever the collection.
type Fetching struct {
	Agent     string        // the name in robots.txt files
	UserAgent string        // the field
	Timeout   time.Duration // see fetch.Config
	MaxBody   int64         // bytes of an answer; default 32 MiB
	Tries     int           // of a URL that fails; default 3
	MaxWait   time.Duration // that a host is left alone at most after failures or at its wish; default 5m
	// between requests to an address that several hosts of a task share
	AddressDelay time.Duration

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

// Deps are what a job needs of the process that it runs in.
type Deps struct {
	Place place.Place // of Conf.Rules
	// Text finds a page's main text; nil: none is found, and pages are judged by their first sentences.
	Text func(*page.Response, *page.Page) (*page.MainText, error)
	Now  func() time.Time // default time.Now
}

// NewJob makes a job.
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
	return nil, fmt.Errorf("there is no job %q", conf.Job)
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

// rulesOf are the rules of a collection. Where its seeds redirect to is in scope as seeds are.
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

// A setup is what the functions of a job share. It does not change.
type setup struct {
	*Conf
	Deps
	members map[string]*member // by code
}

// A member is a collection with what follows from it.
type member struct {
	*collection.Collection
	rules     *policy.Rules
	recrawl   *policy.Recrawl
	isSeed    map[string]bool
	moved     map[string]string // seeds that redirect → where to
	extractor *fieldExtractor   // of job xml; nil: the collection has no rules
}

// member is the collection with a code. A record of another one is not for this job.
func (s *setup) member(code string) (*member, error) {
	m := s.members[code]
	if m == nil {
		return nil, fmt.Errorf("a record of collection %q, which is not among those of the job", code)
	}
	return m, nil
}

// route has records lie where their kinds belong.
func (s *setup) route(key, value []byte) Route {
	kind := KindOf(value)
	if kind == KindRobots {
		return Route{Folder: RobotsFolder}
	}
	code, _, err := SplitKey(key)
	m := s.members[code]
	if err != nil || m == nil {
		return Route{Folder: "lost"} // cannot be: keys are made by Key, of collections of the job
	}
	return Route{Folder: m.Directory + "/" + folders[kind], Format: formats[kind]}
}

// RobotsFolder is the folder of robots.txt answers in a place: they are of all collections.
const RobotsFolder = "robots"

// folders are where records lie in the folder of their collection.
var folders = map[Kind]string{KindInURL: "in", KindDocument: "doc", KindOutLinks: "out", KindKnown: "known",
	KindMove: "moved", KindPage: "xml", KindOther: "other",
	KindFields: FieldsFolder, KindTally: tallyFolder}

var formats = map[Kind]Format{KindPage: XML, KindOther: XML, KindFields: Lines, KindTally: Lines}

// count counts something of a collection.
func (m *member) count(t *Task, name string, n int64) { t.Count(m.Code, name, n) }
