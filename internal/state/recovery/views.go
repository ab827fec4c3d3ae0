package recovery

import (
	"kumo/internal/state/frontier"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
)

// Seen knows which URLs were met: a [seen.DB], or a [seen.Set] for a crawl that keeps nothing.
type Seen interface {
	Offer(urls []seen.URL, news []seen.News) []seen.News
	InsertKnown(urls []seen.URL)
	StateOf(url string) (seen.State, int32, error)
	States(urls []string) ([]seen.State, error)
	Len() int64
}

// Digests knows what was stored, by the digest of its payload.
type Digests interface {
	Put(digest [20]byte, ref seen.Ref)
	Get(digest [20]byte) (seen.Ref, bool, error)
}

// Views are what the journal's entries have come to, in memory and on the disk.
type Views struct {
	Seen      Seen
	Digests   Digests
	Frontier  *frontier.Frontier
	Abandoned *statefile.AbandonedQueue // for a crawl that goes on; nil for one that keeps nothing
	Note      []byte                    // that the frontier's checkpoint has; nil if it has none
}
