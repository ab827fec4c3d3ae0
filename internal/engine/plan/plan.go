// Package plan estimates a crawl before it starts: pages per host, bytes, and duration under each host's delay. It uses
// robots.txt files and the sitemaps that they name. A [Survey] fetches these under the crawl's rules and politeness. It
// fetches no pages.
//
// A [Plan] holds the data of the hosts. [Plan.Estimate] computes the totals for the crawl.
package plan

import (
	"net/netip"
	"time"

	"kumo/internal/base/page"
)

// A Plan is what is known of the hosts that a crawl begins with.
type Plan struct {
	Hosts    []Host        `json:"hosts"` // those that take the longest first, once it is estimated
	Bad      []BadSeed     `json:"bad_seeds,omitempty"`
	Seeds    int           `json:"seeds"`    // without those that are bad
	Requests int64         `json:"requests"` // that were made for it
	Took     time.Duration `json:"-"`
	Left     int           `json:"not_asked,omitempty"` // hosts that were not asked, as the survey was ended
	Sum      Sum           `json:"sum"`
}

// A Bad is a seed that is none.
type BadSeed struct {
	Line int64  `json:"line,omitempty"` // of the file; 0 if it was an argument
	Text string `json:"text"`
	Why  string `json:"why"`
}

// What a host's robots.txt lets a crawl do there.
const (
	Yes     = "yes"      // fetch all of its seeds
	Some    = "some"     // fetch some of its seeds
	No      = "no"       // fetch none of them
	Unknown = "unknown"  // nobody has asked, as no seed is there: its URLs stand in the sitemaps of others
	NoReply = "no reply" // its robots.txt could not be had, so nothing may be fetched for now
)

// A Host is what is known of one host, and what that lets a crawl expect.
type Host struct {
	Host    string       `json:"host"`
	Seeds   int          `json:"seeds"`
	Allowed string       `json:"allowed"` // Yes, Some, No, Unknown or NoReply
	Rule    *Line        `json:"rule,omitempty"`
	Failure page.Failure `json:"failure,omitempty"` // why its robots.txt could not be had
	Error   string       `json:"error,omitempty"`   // the same in words
	Status  int          `json:"robots_status,omitempty"`

	CrawlDelay float64 `json:"crawl_delay,omitempty"` // seconds that its robots.txt asks for
	Delay      float64 `json:"delay"`                 // seconds that the crawl waits between two requests
	DelayBy    string  `json:"delay_by"`              // the setting or line that says so
	Answer     float64 `json:"answer_seconds"`        // that its answers take: as measured, or as assumed without one

	Sitemaps Sitemaps `json:"sitemaps"`

	Pages   *int64   `json:"pages"`    // expected; nil: unknown
	PagesBy string   `json:"pages_by"` // what that rests on
	Bytes   int64    `json:"bytes"`    // of these
	Seconds *float64 `json:"seconds"`  // that they take under the host's delay; nil: unknown
	Note    string   `json:"note,omitempty"`

	addr       netip.Addr
	listed     int64 // distinct URLs of the host that sitemaps list and the crawl may fetch, or that are its seeds
	inSitemaps bool  // some sitemap lists URLs of it
}

// A Line is one of a robots.txt.
type Line struct {
	Number int    `json:"line,omitempty"` // 0: no line, but what its answer means
	Text   string `json:"text"`
	URL    string `json:"forbids"` // the first seed that it forbids
}

// Sitemaps are what was read of a host's.
type Sitemaps struct {
	Read      int    `json:"read"`
	Failed    int    `json:"failed,omitempty"`    // that could not be read
	Left      int    `json:"left,omitempty"`      // that were not read, as there are too many
	URLs      int64  `json:"urls"`                // that they list
	InScope   int64  `json:"in_scope"`            // of these
	Allowed   int64  `json:"allowed"`             // of these, by robots.txt and the crawl's rules, each once
	Elsewhere string `json:"elsewhere,omitempty"` // the host out of scope that most others are on
}
