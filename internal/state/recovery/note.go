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

// A Note is the engine's part of a checkpoint. The frontier keeps it with its own; seen and the digests have their
// positions themselves.
type Note struct {
	Version  int
	Position journal.Position // up to which the journal is in the checkpoint
	Marks    []store.Mark
	Stats    stats.Snapshot
	Sums     stats.Sums
	Lists    []entry.SeedListMark    `json:",omitempty"` // of seeds
	Shelved  statefile.AbandonedMark // what was given up with its origin, and waits for another run
	Settled  []string                // URLs whose end is in the journal, and whose visit the frontier still had under way
	// URLs in the frontier of which skipped.jsonl has said that their host could not be had
	Told     []string
	Asked    int64               // how much of the file of set-aside URLs has been written down
	Arrivals *transfer.Unsettled `json:",omitempty"` // of hosts, from other nodes
	Tenures  Tenures             `json:",omitempty"` // of hosts that were given away
	Cookies  []byte              `json:",omitempty"` // that servers have set, as [cookies.Append] writes them
	Traps    *traps.State        `json:",omitempty"` // what was learnt of patterns of URLs
	Slices   int                 `json:",omitempty"` // that each host is cut into, if more than one
}

// NoteSlices is Note.Slices for a crawl that cuts its hosts so.
func NoteSlices(s *item.Slices) int {
	if s == nil {
		return 0
	}
	return s.Count()
}

// NoteVersion is the version that is written and read.
const NoteVersion = 6
