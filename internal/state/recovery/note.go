package recovery

import (
	"kumo/internal/base/item"
	"kumo/internal/base/stats"
	"kumo/internal/content/traps"
	"kumo/internal/state/entry"
	"kumo/internal/state/journal"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
	"kumo/internal/state/transfer"
)

// A Note is the engine's part of a checkpoint. The frontier stores it in its checkpoint. seen and the digests store
// their positions themselves.
type Note struct {
	Version  int
	Position journal.Position // journal position of the checkpoint
	Marks    []store.Mark
	Stats    stats.Snapshot
	Sums     stats.Sums
	Lists    []entry.SeedListMark    `json:",omitempty"` // of seed lists
	Shelved  statefile.AbandonedMark // the queue of abandoned URLs for the next run
	// URLs that are done in the journal, but whose visits were under way in the frontier
	Settled []string
	// Told contains the URLs in the frontier that skipped.jsonl reports as failed with their host.
	Told     []string
	Asked    int64               // bytes of the file of deferred URLs that were reported
	Arrivals *transfer.Unsettled `json:",omitempty"` // transfers from other nodes
	Tenures  Tenures             `json:",omitempty"` // of released hosts
	Cookies  []byte              `json:",omitempty"` // set by servers, encoded by [cookies.Append]
	Traps    *traps.State        `json:",omitempty"` // learned URL patterns
	Slices   int                 `json:",omitempty"` // slices per host, if more than one
}

// NoteSlices returns Note.Slices for a crawl with these slices.
func NoteSlices(s *item.Slices) int {
	if s == nil {
		return 0
	}
	return s.Count()
}

// NoteVersion is the version that is written and read.
const NoteVersion = 6
