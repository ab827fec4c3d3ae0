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

// A Collection defines a set of pages to crawl together, and how. [Load] has set defaults and checked the values.
type Collection struct {
	Code      string `yaml:"code"`                // identifier: lower case letters, digits and hyphens
	Name      string `yaml:"name,omitempty"`      // display name, in its own language
	Directory string `yaml:"directory,omitempty"` // folder in the storage location; default crawler_CODE

	Seeds   []string `yaml:"seeds"`             // http and https URLs, canonical
	Scope   string   `yaml:"scope,omitempty"`   // distance from the seeds: host, domain (default), prefix, page, any
	Include []string `yaml:"include,omitempty"` // if not empty, URLs other than seeds must match one of these patterns
	Exclude []string `yaml:"exclude,omitempty"` // URLs must match none of these

	Depth     int      `yaml:"depth"`               // hops from a seed, 0: only the seeds; default 8
	Threads   int      `yaml:"threads,omitempty"`   // concurrent fetches per task; default 30
	Interval  Duration `yaml:"interval,omitempty"`  // between two pages of a site; default 1s
	Redirects int      `yaml:"redirects,omitempty"` // in a row; default 20

	Charsets []string `yaml:"charsets,omitempty"` // expected in its pages, WHATWG names
	Language Language `yaml:"language,omitempty"`
	Recrawl  []string `yaml:"recrawl,omitempty"` // as parsed by policy.ParseInterval; default 24h,20h,30d
	// file of rules that extract records from its pages, relative to its own file
	Fields   string `yaml:"fields,omitempty"`
	Schedule string `yaml:"schedule,omitempty"` // run times, as parsed by ParseSchedule; "": no scheduled runs

	// FieldRules is the content of the file Fields, so that the rules travel with the collection.
	FieldRules []byte `yaml:"-" json:",omitempty"`
}

// A Language is the expected language of pages. Pages in other languages are stored separately.
type Language struct {
	Code       string  `yaml:"code,omitempty"`       // as in lang.Known, or AnyLanguage; default: the collection's code
	Share      float64 `yaml:"share,omitempty"`      // minimum share of its text in this language; default 0.5
	Confidence float64 `yaml:"confidence,omitempty"` // minimum confidence of the detection; default 0.5
}

// AnyLanguage as a language's code accepts pages in any language.
const AnyLanguage = "any"

// Accepts reports whether a page belongs to the collection: its main language is this one, with the required share and
// confidence. A page whose language is unknown ("") is accepted.
func (l *Language) Accepts(code string, share, confidence float64) bool {
	return code == "" || l.Code == AnyLanguage || code == l.Code && share >= l.Share && confidence >= l.Confidence
}

// A Duration is written as Go writes it: 500ms, 1s, 2m.
type Duration time.Duration

// MarshalYAML implements yaml.Marshaler.
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

// New returns a collection with all defaults that do not depend on its code.
func New() *Collection {
	return &Collection{Scope: defaultScope, Depth: DefaultDepth, Threads: DefaultThreads,
		Interval: Duration(DefaultInterval), Redirects: DefaultRedirects,
		Language: Language{Share: defaultShare, Confidence: defaultShare}, Recrawl: []string{defaultRecrawl}}
}

// Rules returns the rules that judge its URLs.
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

// ParsedSchedule returns the parsed Schedule; the zero value if none is set.
func (c *Collection) ParsedSchedule() (Schedule, error) {
	if c.Schedule == "" {
		return Schedule{}, nil
	}
	return ParseSchedule(c.Schedule)
}

// YAML returns the collection as a YAML file.
func (c *Collection) YAML() ([]byte, error) { return yaml.Marshal(c) }

// Intervals returns its recrawl intervals.
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
