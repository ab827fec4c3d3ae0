// Package inspect answers queries about a crawl: the outcome of a URL, the pending hosts and why they wait, and the
// known URLs.
//
// A [Source] answers the queries. An opened folder of a stopped crawl is a Source. No other process can open the folder
// of a running crawl, so the crawl runs a [Server], which a [Client] queries.
//
// The server listens on a port of the loopback address. Every system supports that, whereas a socket in the crawl's
// folder fails on long paths and shared disks. A file in the folder, readable only by the crawl's user, contains the
// port and a token for this run. The server rejects requests without the token.
package inspect

import (
	"context"
	"iter"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/stats"
)

// A Source answers queries about a crawl. Its methods may be called concurrently, also while the crawl runs. A sequence
// yields at most one error, as its last element.
type Source interface {
	Status(ctx context.Context) (*Status, error)
	Explain(ctx context.Context, url string) (*Explanation, error)
	Hosts(ctx context.Context, n int) iter.Seq2[Host, error]              // the first n, longest queues first
	Queue(ctx context.Context, host string, n int) iter.Seq2[Item, error] // the first n pending URLs, at most 10,000
	// the first n URLs with the prefix, in order
	Seen(ctx context.Context, prefix string, n int) iter.Seq2[Known, error]
	// The first n hosts or URLs with the prefix that sort after the given one; hosts sort like their URLs.
	HostsFrom(ctx context.Context, prefix, after string, n int) iter.Seq2[Host, error]
	SeenFrom(ctx context.Context, prefix, after string, n int) iter.Seq2[Known, error]
	// The n most important known URLs or, with bySite, the n sites with the most important ones.
	Top(ctx context.Context, n int, bySite bool) iter.Seq2[Important, error]
}

// A CurveReader returns the history of a running crawl's counters.
type CurveReader interface {
	Curves(ctx context.Context) (*stats.Curves, error)
}

// An Important is an important URL, or a site represented by its most important URL.
type Important struct {
	URL        string  `json:"url"`
	Importance float64 `json:"importance"`
	Depth      int     `json:"depth"`
	Status     int     `json:"status,omitempty"` // of the last fetch
	Fetched    bool    `json:"fetched"`          // or tried

	Site    string  `json:"site,omitempty"`    // the following fields describe the site, if sites are listed
	URLs    int     `json:"urls,omitempty"`    // known ones
	Waiting int     `json:"waiting,omitempty"` // of these, never visited
	Sum     float64 `json:"sum,omitempty"`     // of the URLs' importances
}

// An Item is a pending URL.
type Item struct {
	URL   string `json:"url"`
	From  string `json:"from,omitempty"` // the linking page, "" for a seed
	Path  string `json:"path,omitempty"` // one letter per hop from the seed, as in crawl.log
	Depth int    `json:"depth"`
	Tries int    `json:"tries,omitempty"` // previous visits

	// It looks like a trap, and comes after its host's other URLs.
	Deferred bool `json:"deferred,omitempty"`
}

// HostOf returns the host of a key, which may be the key of a slice.
func HostOf(key string) string { return item.HostOfSlice(key) }

// A Host is a host in the frontier.
type Host struct {
	Key        string        `json:"host"`                  // or a slice such as example.com#3
	Slices     int           `json:"slices,omitempty"`      // that the host is divided into, if more than one
	Waiting    int           `json:"waiting"`               // pending URLs
	Active     int           `json:"active"`                // visits under way
	Next       time.Time     `json:"next"`                  // earliest time of the next visit
	For        string        `json:"for"`                   // the reason for the wait
	Parked     bool          `json:"parked,omitempty"`      // its URLs wait for robots.txt
	Delay      time.Duration `json:"delay"`                 // between visits, in nanoseconds
	CrawlDelay time.Duration `json:"crawl_delay"`           // requested by robots.txt, for the whole host
	MaxBackoff time.Duration `json:"max_backoff,omitempty"` // longest back-off; only while backing off
	Failures   int           `json:"failures"`              // in a row
	// Fetched pages; only if Most limits them, and for a single URL's host.
	Pages int64 `json:"pages,omitempty"`
	Most  int64 `json:"most,omitempty"`
}

// A Known is a known URL.
type Known struct {
	URL     string    `json:"url"`
	State   string    `json:"state"` // "known", or "left out" if only links that did not admit it were found
	Depth   int       `json:"depth"`
	Since   time.Time `json:"since"` // to the minute
	Fetched time.Time `json:"fetched,omitzero"`
	Status  int       `json:"status,omitempty"`
	Due     time.Time `json:"due,omitzero"` // time of the next visit, in a crawl with recrawls
}
