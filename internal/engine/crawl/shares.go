package crawl

import (
	"runtime"

	"kumo/internal/content/duplicate"
	"kumo/internal/state/ledger"
)

// Shares is the memory for pages under way, in bytes, which its methods divide among the uses.
type Shares int64

// defaultShares is used if Config.Shares is 0.
const defaultShares Shares = 1 << 30

const (
	slotsPerProcessor = 4   // more than one, as readers wait for locks and disks at times
	maxIdleBuffers    = 128 // kept for reuse
	bufferSize        = 256 << 10

	minSlotRoom, maxSlotRoom   = 256 << 10, 1 << 20
	minLargeRoom, maxLargeRoom = 12 << 20, 64 << 20

	// memory of a slot, as a multiple of its room: a body is held encoded and decoded, and its links in several forms
	slotCost      = 10
	textCost      = 110       // memory of a main text, as a multiple of the page: TestMemory of package maintext
	largeSlotCost = 512 << 20 // memory per large slot
)

// Answers returns how many bytes of incoming answers may be in memory; the rest is on disk.
func (s Shares) Answers() int64 { return int64(s) / 4 }

// SlotRoom returns how many bytes of a body are read at an ordinary slot. A longer body is read again from its
// beginning at a large slot.
func (s Shares) SlotRoom() int64 { return min(max(int64(s)/256, minSlotRoom), maxSlotRoom) }

func (s Shares) slots() int {
	most := slotsPerProcessor * runtime.GOMAXPROCS(0)
	return max(min(int(int64(s)/2/(slotCost*s.SlotRoom())), most), min(slotsPerProcessor, most))
}

// largeRoom returns how many bytes of a body are read at most: four times the default limit of an answer over the wire,
// less if memory is scarce.
func (s Shares) largeRoom() int64 { return min(max(int64(s)/4, minLargeRoom), maxLargeRoom) }

func (s Shares) largeSlots() int { return max(1, min(int(s/largeSlotCost), runtime.GOMAXPROCS(0))) }

// idleBuffers returns how many buffers for answers are kept for reuse.
func (s Shares) idleBuffers() int { return max(4, min(int(int64(s)/16/bufferSize), maxIdleBuffers)) }

// windows returns how many decoders with large windows may run at once.
func (s Shares) windows() int { return max(1, min(int(s>>26), runtime.GOMAXPROCS(0))) }

// linksAtOnce returns how many of a page's links go into one batch if each takes about the given number of bytes.
func (s Shares) linksAtOnce(each int) int { return max(256, int(2*s.SlotRoom())/each) }

// Texts returns for how many pages at ordinary slots main texts may be extracted at once.
func (s Shares) Texts() int {
	return max(1, min(int(int64(s)/2/(textCost*s.SlotRoom())), runtime.GOMAXPROCS(0)))
}

// resources returns how many bytes of resources are kept for the pages that are rendered next.
func (s Shares) resources() int64 { return min(max(int64(s)/8, 8<<20), 128<<20) }

// compared returns how many pages are kept for comparison: they take at most a twentieth.
func (s Shares) compared() int { return min(max(int(s/20/640), 256), duplicate.DefaultPages) }

// maxPending bounds the bytes of journal entries that wait to be committed.
const maxPending = 64 << 20

func (s Shares) pending() int { return int(min(max(int64(s)/16, 2*ledger.CommitBytes), maxPending)) }
