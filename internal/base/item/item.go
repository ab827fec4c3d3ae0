// Package item defines the queue item, a URL to fetch, and its encoding.
//
// The journal, the state files and the messages between nodes all use this encoding.
package item

import (
	"strconv"
	"strings"

	"kumo/internal/base/page"
)

// An Item is a URL in a queue.
type Item struct {
	URL       string // canonical
	From      string // the page that links to it
	Seed      string // the seed it descends from
	Path      string // one letter per hop from the seed; see [page.Kind.Hop]
	Depth     int32
	Kind      page.Kind
	Redirects uint8  // consecutive redirects that led here
	Tries     uint8  // visits so far
	ScopeSeed bool   // a seed, or the target of a seed's redirect
	Robots    string // the origin whose robots.txt this is fetched for; "" for an ordinary URL
	QueueLast bool   // queue behind the host's other URLs; the failure may be this URL's own
	Reported  bool   // an earlier run reported that its host was abandoned
	Recrawl   bool   // it was visited before and is due again
	Refetch   bool   // it was fetched, but the record is lost; ignore the results of that visit
	Refetches uint8  // how many times, if other nodes remember finished URLs; otherwise 0
	Vain      uint8  // consecutive pages in vain on the way to it, at most 255; see package traps
	Deferred  bool   // queue behind the host's URLs that are not deferred; it looks like a trap
	Lift      int8   // places to move forward among URLs of its importance; see [kumo/internal/state/rank.Lift]

	// Position in the host's queue: lowest Rank first, then lowest Seq. The caller of Push sets Rank; the queue sets
	// Seq, and Rank for QueueLast items. Neither is encoded.
	Rank int32
	Seq  uint64
}

// FromSeed returns the item of a seed.
func FromSeed(url string) Item { return Item{URL: url, Seed: url, Kind: page.Seed, ScopeSeed: true} }

// IsNew reports whether the item is an ordinary URL that was discovered and not processed any further.
func (it *Item) IsNew() bool {
	return it.Tries == 0 && it.Robots == "" && !it.QueueLast && !it.Reported && !it.Recrawl && !it.Refetch && !it.Deferred
}

// Key identifies the item where other nodes remember finished URLs. It consists of the URL and the number of refetches.
func (it *Item) Key() string {
	if it.Refetches == 0 {
		return it.URL
	}
	return it.URL + " " + strconv.Itoa(int(it.Refetches)) // unambiguous: no URL contains a space
}

// Host returns the host of the item's URL.
func (it *Item) Host() string { return HostOf(it.URL) }

// HostOf returns the host, with its port, of an http or https URL or an origin, as a substring; "" for anything else.
func HostOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	for _, end := range [...]byte{'/', '?', '#'} {
		if i := strings.IndexByte(rest, end); i >= 0 {
			rest = rest[:i]
		}
	}
	return rest[strings.LastIndexByte(rest, '@')+1:]
}

// HostnameOf returns a host without its port. An IPv6 address keeps its brackets.
func HostnameOf(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		return host[:i]
	}
	return host
}

// OriginOf returns the part of a URL before its path, or an empty value if there is none.
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

// Weight is the approximate memory of an item, in bytes, without its strings.
const Weight = 300
