package crawl

import (
	"runtime"

	"kumo/internal/content/duplicate"
	"kumo/internal/state/ledger"
)

// Shares say how much of the memory for pages under way goes to what.
type Shares int64

// defaultShares is for an engine to which nothing else is said.
const defaultShares Shares = 1 << 30

const (
	slotsPerProcessor = 4   // readers wait for locks and disks at times
	maxIdleBuffers    = 128 // at rest
	bufferSize        = 256 << 10

	minSlotRoom, maxSlotRoom   = 256 << 10, 1 << 20
	minLargeRoom, maxLargeRoom = 12 << 20, 64 << 20

	// times its room: a body is held as it came and as it is read, and its links are held in several forms
	slotCost      = 10
	textCost      = 40        // times a page's length: the worst page known
	largeSlotCost = 512 << 20 // for each large slot but the first
)

// Answers is what answers that come may hold in memory; the rest of them is on the disk.
func (s Shares) Answers() int64 { return int64(s) / 4 }

// SlotRoom is how much of a body is read at an ordinary slot. Of a longer one it is read at a large slot, from its
// beginning.
func (s Shares) SlotRoom() int64 { return min(max(int64(s)/256, minSlotRoom), maxSlotRoom) }

func (s Shares) slots() int {
	most := slotsPerProcessor * runtime.GOMAXPROCS(0)
	return max(min(int(int64(s)/2/(slotCost*s.SlotRoom())), most), min(slotsPerProcessor, most))
}

// largeRoom is how much of a body is read at all: four times what an answer may have over the wire by default, less
// where memory is scarce.
func (s Shares) largeRoom() int64 { return min(max(int64(s)/4, minLargeRoom), maxLargeRoom) }

func (s Shares) largeSlots() int { return max(1, min(int(s/largeSlotCost), runtime.GOMAXPROCS(0))) }

// idleBuffers is how many buffers for answers are kept at rest.
func (s Shares) idleBuffers() int { return max(4, min(int(int64(s)/16/bufferSize), maxIdleBuffers)) }

// windows is how many decoders with wide windows may be at work.
func (s Shares) windows() int { return max(1, min(int(s>>26), runtime.GOMAXPROCS(0))) }

// linksAtOnce is how many of a page's links are taken in by one batch, where each takes about so many bytes.
func (s Shares) linksAtOnce(each int) int { return max(256, int(2*s.SlotRoom())/each) }

// Texts is how many main texts may be looked for at once in pages that are read at ordinary slots.
func (s Shares) Texts() int {
	return max(1, min(int(int64(s)/2/(textCost*s.SlotRoom())), runtime.GOMAXPROCS(0)))
}

// compared is how many pages are kept to compare others with: they take a twentieth at most.
func (s Shares) compared() int { return min(max(int(s/20/640), 256), duplicate.DefaultPages) }

// pending is how many bytes of journal entries may wait to be committed.
// maxPending bounds the entries that wait to be committed, where there is memory.
const maxPending = 64 << 20

func (s Shares) pending() int { return int(min(max(int64(s)/16, 2*ledger.CommitBytes), maxPending)) }
