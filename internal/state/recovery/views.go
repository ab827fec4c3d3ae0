package recovery

import (
	"kumo/internal/state/frontier"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
)

// Seen contains the known URLs: a [seen.DB], or a [seen.Set] for a crawl without persistent state.
type Seen interface {
	Offer(urls []seen.URL, news []seen.News) []seen.News
	InsertKnown(urls []seen.URL)
	StateOf(url string) (seen.State, int32, error)
	States(urls []string) ([]seen.State, error)
	Len() int64
}

// Digests contains the stored payloads by digest.
type Digests interface {
	Put(digest [20]byte, ref seen.Ref)
	Get(digest [20]byte) (seen.Ref, bool, error)
}

// Views are the results of the journal's entries, in memory and on disk.
type Views struct {
	Seen      Seen
	Digests   Digests
	Frontier  *frontier.Frontier
	Abandoned *statefile.AbandonedQueue // nil for a crawl without persistent state
	Note      []byte                    // of the frontier's checkpoint; nil if it has none
}
