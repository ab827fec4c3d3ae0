// Package collection reads and checks the collections of a batch crawl. A collection is a part of the web with its own
// seeds, rules and language, defined in a YAML file.
package collection

import (
	"fmt"
	"regexp"
	"time"

	"kumo/internal/base/weburl"
	"kumo/internal/base/yaml"
	"kumo/internal/content/policy"
)

// A Collection says what is crawled together, and how. [Load] has filled in and checked what a file says.
type Collection struct {
	Code      string `yaml:"code"`                // names it: lower case letters, digits and hyphens
	Name      string `yaml:"name,omitempty"`      // for people, in its own language
	Directory string `yaml:"directory,omitempty"` // in the place; default crawler_CODE

	Seeds   []string `yaml:"seeds"`             // http and https URLs, canonical
	Scope   string   `yaml:"scope,omitempty"`   // how far from the seeds: host, domain (default), prefix, page, any
	Include []string `yaml:"include,omitempty"` // a URL must match one of these patterns, if there are any; seeds need not
	Exclude []string `yaml:"exclude,omitempty"` // and none of these

	Depth     int      `yaml:"depth"`               // hops from a seed, 0: the seeds alone; default 8
	Threads   int      `yaml:"threads,omitempty"`   // that fetch at once, a task; default 30
	Interval  Duration `yaml:"interval,omitempty"`  // between two pages of a site; default 1s
	Redirects int      `yaml:"redirects,omitempty"` // in a row; default 20

	Charsets []string `yaml:"charsets,omitempty"` // that its pages are expected in, WHATWG names
	Language Language `yaml:"language,omitempty"`
	Recrawl  []string `yaml:"recrawl,omitempty"`  // as policy.ParseInterval reads them; default 24h,20h,30d
	Fields   string   `yaml:"fields,omitempty"`   // a file of rules by which records are made of its pages, beside its own
	Schedule string   `yaml:"schedule,omitempty"` // when it is run, as ParseSchedule reads it; "" is never by itself

	// FieldRules is what the file Fields holds, so that whoever has the collection has its rules.
	FieldRules []byte `yaml:"-" json:",omitempty"`
}

// A Language is what a page must be in to be kept with the others. Others are kept apart.
type Language struct {
	Code       string  `yaml:"code,omitempty"`       // as in lang.Known, or AnyLanguage; default that of the collection
	Share      float64 `yaml:"share,omitempty"`      // of its text that is in it, at least; default 0.5
	Confidence float64 `yaml:"confidence,omitempty"` // of telling it, at least; default 0.5
}

// AnyLanguage as a language's code keeps pages whatever they are in.
const AnyLanguage = "any"

// Accepts reports whether a page is kept with the collection's: most of it is in this language, share of it, as far as
// confidence goes. One without a language that can be told ("") is.
func (l *Language) Accepts(code string, share, confidence float64) bool {
	return code == "" || l.Code == AnyLanguage || code == l.Code && share >= l.Share && confidence >= l.Confidence
}

// A Duration is written as Go writes it: 500ms, 1s, 2m.
type Duration time.Duration

// MarshalYAML writes it.
func (d Duration) MarshalYAML() (any, error) { return time.Duration(d).String(), nil }

// Defaults.
const (
	DefaultDepth     = 8
	DefaultThreads   = 30
	DefaultInterval  = time.Second
	DefaultRedirects = 20
	defaultScope     = "domain"
	defaultShare     = 0.5
	defaultRecrawl   = "24h,20h,30d"
)

// New returns a collection with all defaults but those that follow from its code.
func New() *Collection {
	return &Collection{Scope: defaultScope, Depth: DefaultDepth, Threads: DefaultThreads,
		Interval: Duration(DefaultInterval), Redirects: DefaultRedirects,
		Language: Language{Share: defaultShare, Confidence: defaultShare}, Recrawl: []string{defaultRecrawl}}
}

// Rules are the rules by which its URLs are judged.
func (c *Collection) Rules() (*policy.Rules, error) {
	mode, err := weburl.ParseMode(c.Scope)
	if err != nil {
		return nil, err
	}
	r := &policy.Rules{Scope: weburl.NewScope(mode), MaxDepth: c.Depth, MaxRedirects: c.Redirects}
	for _, seed := range c.Seeds {
		u, err := weburl.Parse(seed)
		if err != nil {
			return nil, err
		}
		r.Scope.AddSeed(u)
	}
	if r.Include, err = patterns(c.Include); err != nil {
		return nil, err
	}
	r.Exclude, err = patterns(c.Exclude)
	return r, err
}

func patterns(texts []string) (all []*regexp.Regexp, err error) {
	for _, text := range texts {
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		all = append(all, re)
	}
	return all, nil
}

// ParsedSchedule is when it is run; the zero Schedule if nobody said.
func (c *Collection) ParsedSchedule() (Schedule, error) {
	if c.Schedule == "" {
		return Schedule{}, nil
	}
	return ParseSchedule(c.Schedule)
}

// YAML is the collection as a file.
func (c *Collection) YAML() ([]byte, error) { return yaml.Marshal(c) }

// Intervals say when its URLs are visited again.
func (c *Collection) Intervals() (*policy.Recrawl, error) {
	r := &policy.Recrawl{}
	for _, text := range c.Recrawl {
		i, err := policy.ParseInterval(text)
		if err != nil {
			return nil, err
		}
		r.Intervals = append(r.Intervals, i)
	}
	return r, nil
}
