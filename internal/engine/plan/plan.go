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

// A Plan has the data about the hosts of a crawl's seeds.
type Plan struct {
	Hosts    []Host        `json:"hosts"` // after Estimate, sorted by duration, the longest first
	Bad      []BadSeed     `json:"bad_seeds,omitempty"`
	Seeds    int           `json:"seeds"`    // valid ones
	Requests int64         `json:"requests"` // requests made by the survey
	Took     time.Duration `json:"-"`
	Left     int           `json:"not_asked,omitempty"` // hosts that were not queried because the survey was stopped
	Sum      Sum           `json:"sum"`
}

// A BadSeed is an invalid seed.
type BadSeed struct {
	Line int64  `json:"line,omitempty"` // of the file; 0: an argument
	Text string `json:"text"`
	Why  string `json:"why"`
}

// Values of Host.Allowed: whether the host's robots.txt and the crawl's rules allow its seeds.
const (
	Yes     = "yes"      // all of its seeds
	Some    = "some"     // some of its seeds
	No      = "no"       // none of its seeds
	Unknown = "unknown"  // the host has no seed and was not queried: its URLs are in sitemaps of other hosts
	NoReply = "no reply" // robots.txt could not be fetched, so nothing may be fetched for now
)

// A Host has the data about one host, and the estimate for it.
type Host struct {
	Host    string       `json:"host"`
	Seeds   int          `json:"seeds"`
	Allowed string       `json:"allowed"` // Yes, Some, No, Unknown or NoReply
	Rule    *Line        `json:"rule,omitempty"`
	Failure page.Failure `json:"failure,omitempty"` // of the request for robots.txt
	Error   string       `json:"error,omitempty"`   // error text of Failure
	Status  int          `json:"robots_status,omitempty"`

	CrawlDelay float64 `json:"crawl_delay,omitempty"` // requested by robots.txt, in seconds
	Delay      float64 `json:"delay"`                 // between two requests, in seconds
	DelayBy    string  `json:"delay_by"`              // the setting or robots.txt line that determines Delay
	Answer     float64 `json:"answer_seconds"`        // average duration of an answer, or the assumed one

	Sitemaps Sitemaps `json:"sitemaps"`

	Pages   *int64   `json:"pages"`    // expected; nil: unknown
	PagesBy string   `json:"pages_by"` // source of Pages
	Bytes   int64    `json:"bytes"`    // of Pages
	Seconds *float64 `json:"seconds"`  // duration of Pages under the host's delay; nil: unknown
	Note    string   `json:"note,omitempty"`

	addr       netip.Addr
	listed     int64 // distinct URLs of the host that may be fetched and are seeds or in sitemaps
	inSitemaps bool  // a sitemap lists URLs of the host
}

// A Line is a line of a robots.txt.
type Line struct {
	Number int    `json:"line,omitempty"` // 0: not a line, but a consequence of the answer's status
	Text   string `json:"text"`
	URL    string `json:"forbids"` // the first seed that it forbids
}

// Sitemaps counts the sitemaps of a host, and their URLs.
type Sitemaps struct {
	Read    int   `json:"read"`
	Failed  int   `json:"failed,omitempty"` // could not be read
	Left    int   `json:"left,omitempty"`   // not read, as there are too many
	URLs    int64 `json:"urls"`             // listed in them
	InScope int64 `json:"in_scope"`         // of URLs
	// of InScope: allowed by robots.txt and the crawl's rules, without duplicates
	Allowed   int64  `json:"allowed"`
	Elsewhere string `json:"elsewhere,omitempty"` // the host out of scope with the most URLs
}
