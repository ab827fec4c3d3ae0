// Package item defines the queue item, a URL that is to be fetched, and its encoding.
//
// The journal, the state files and the messages between nodes all use this encoding.
package item

import (
	"strconv"
	"strings"

	"kumo/internal/base/page"
)

// An Item is a URL that waits.
type Item struct {
	URL       string // canonical
	From      string // the page that named it
	Seed      string // the seed it descends from
	Path      string // hops from the seed
	Depth     int32
	Kind      page.Kind
	Redirects uint8  // redirects in a row that led here
	Tries     uint8  // visits that it had
	ScopeSeed bool   // a seed, or where a seed redirects to
	Robots    string // the origin whose robots.txt this is fetched for, "" for an ordinary URL
	QueueLast bool   // after all that wait now: it failed where others may not
	Reported  bool   // an earlier run has said that its host could not be had
	Recrawl   bool   // it was visited before, and its time has come again
	Refetch   bool   // it was fetched, and its record is lost: what is known of a visit says nothing
	Refetches uint8  // how often that was, where others remember which URLs are done; 0: they do not, or it was not
	Vain      uint8  // pages in vain in a row on the way to it, 255 at most; see package traps
	Deferred  bool   // behind all of the host that is not: it is like a trap
	Lift      int8   // by how many places it goes before others of its importance, see [kumo/internal/state/rank.Lift]

	// Its place in its host's queue: the least rank goes first, then what is oldest. Who pushes it gives the rank, the
	// queue the age, and the rank of what comes late. They are not written down with it.
	Rank int32
	Seq  uint64
}

// FromSeed is the item of a seed.
func FromSeed(url string) Item { return Item{URL: url, Seed: url, Kind: page.Seed, ScopeSeed: true} }

// IsNew reports whether nothing has become of the item yet: it is an ordinary URL that was met and no more.
func (it *Item) IsNew() bool {
	return it.Tries == 0 && it.Robots == "" && !it.QueueLast && !it.Reported && !it.Recrawl && !it.Refetch && !it.Deferred
}

// Key is what the item is known by where others remember which URLs are done: its URL, and how often the record of that
// was lost.
func (it *Item) Key() string {
	if it.Refetches == 0 {
		return it.URL
	}
	return it.URL + " " + strconv.Itoa(int(it.Refetches)) // no URL has a space
}

// Host is the host of the item's URL, in whose queue it waits.
func (it *Item) Host() string { return HostOf(it.URL) }

// HostOf is the host of a URL of the web, or of an origin, with its port, as a part of it; "" of anything else.
func HostOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	for _, end := range [...]byte{'/', '?', '#'} {
		if i := strings.IndexByte(rest, end); i >= 0 {
			rest = rest[:i]
		}
	}
	return rest[strings.LastIndexByte(rest, '@')+1:]
}

// HostnameOf is a host without its port; an IPv6 address keeps its brackets.
func HostnameOf(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		return host[:i]
	}
	return host
}

// OriginOf is all that is before a URL's path; nothing if that is not to be found.
func OriginOf[T string | []byte](url T) T {
	for i, slashes := 0, 0; i < len(url); i++ {
		if url[i] == '/' {
			if slashes++; slashes == 3 {
				return url[:i]
			}
		}
	}
	return url[:0]
}

// Weight is how many bytes an item takes in memory, about, besides its strings.
const Weight = 300
