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

// A Source answers. Its methods may be called while the crawl runs, by many goroutines at once. A sequence ends with an
// error if there is one.
type Source interface {
	Status(ctx context.Context) (*Status, error)
	Explain(ctx context.Context, url string) (*Explanation, error)
	Hosts(ctx context.Context, n int) iter.Seq2[Host, error]                // the first n, those with most URLs first
	Queue(ctx context.Context, host string, n int) iter.Seq2[Item, error]   // the first n that wait, 10,000 at most
	Seen(ctx context.Context, prefix string, n int) iter.Seq2[Known, error] // the first n that begin with prefix, in order
	// the first n of both whose names, or URLs, begin with prefix and come after another: hosts in the order of their URLs
	HostsFrom(ctx context.Context, prefix, after string, n int) iter.Seq2[Host, error]
	SeenFrom(ctx context.Context, prefix, after string, n int) iter.Seq2[Known, error]
	// the n most important URLs that are known, or, with bySite, the n sites with the most important ones
	Top(ctx context.Context, n int, bySite bool) iter.Seq2[Important, error]
}

// A Curver says how the counters of a crawl that runs went.
type CurveReader interface {
	Curves(ctx context.Context) (*stats.Curves, error)
}

// An Important is a URL that is more important than others, or a site by its most important one.
type Important struct {
	URL        string  `json:"url"`
	Importance float64 `json:"importance"`
	Depth      int     `json:"depth"`
	Status     int     `json:"status,omitempty"` // as it was fetched last
	Fetched    bool    `json:"fetched"`          // or tried

	Site    string  `json:"site,omitempty"`    // what follows is of it, and is there when sites are listed
	URLs    int     `json:"urls,omitempty"`    // that are known
	Waiting int     `json:"waiting,omitempty"` // of these, those that were never visited
	Sum     float64 `json:"sum,omitempty"`     // of their importances
}

// An Item is a URL that waits.
type Item struct {
	URL   string `json:"url"`
	From  string `json:"from,omitempty"` // the page that named it, "" for a seed
	Path  string `json:"path,omitempty"` // a letter a hop from the seed, as in crawl.log
	Depth int    `json:"depth"`
	Tries int    `json:"tries,omitempty"` // visits that it had

	// it is like a trap, and goes after all of its host that is not
	Deferred bool `json:"deferred,omitempty"`
}

// HostOf is the host of a key, which may be that of a slice.
func HostOf(key string) string { return item.HostOfSlice(key) }

// A Host is a host as the frontier has it.
type Host struct {
	Key        string        `json:"host"`                  // or its slice, as in example.com#3
	Slices     int           `json:"slices,omitempty"`      // that the host is cut into, if more than one
	Waiting    int           `json:"waiting"`               // URLs
	Active     int           `json:"active"`                // visits under way
	Next       time.Time     `json:"next"`                  // no visit before
	For        string        `json:"for"`                   // what it waits for
	Parked     bool          `json:"parked,omitempty"`      // what waits stays until robots.txt is there
	Delay      time.Duration `json:"delay"`                 // between visits, in nanoseconds
	CrawlDelay time.Duration `json:"crawl_delay"`           // that robots.txt asks for, of the whole host
	MaxBackoff time.Duration `json:"max_backoff,omitempty"` // it is left alone for so long at most; only where it is
	Failures   int           `json:"failures"`              // in a row
	// that it has given; only where Most bounds them, and for one URL's host
	Pages int64 `json:"pages,omitempty"`
	Most  int64 `json:"most,omitempty"`
}

// Known is a URL that was met.
type Known struct {
	URL     string    `json:"url"`
	State   string    `json:"state"` // "known", or "left out" if so far only by links that did not bring it in
	Depth   int       `json:"depth"`
	Since   time.Time `json:"since"` // to the minute
	Fetched time.Time `json:"fetched,omitzero"`
	Status  int       `json:"status,omitempty"`
	Due     time.Time `json:"due,omitzero"` // its next visit, in a crawl with recrawls
}
