package frontier

import (
	"encoding/binary"
	"time"
)

// A record is a cold host in memory: 40 bytes without a pointer. Its name is in a bucket or block, with its items. A
// host is identified by 96 bits of the SHA-256 of its name. Two of a billion hosts collide with a probability of
// 10^-11, and nobody can construct a name that collides with another.
type record struct {
	hi     uint64
	state  uint64
	top    loc // the first block of the queue; 0 if the queue has no blocks
	lo     uint32
	bucket uint32 // bucket of the queue's front; 0 if the host is parked or its queue is empty
	count  uint32 // number of items
	delay  uint32 // requested delay in ms, with isAway and hasOwnDelay
}

const recordLen = 40

// A status is a record's state, unpacked.
type status struct {
	next                int64 // the host is not visited before this tick
	failures, throttles int
	deepest             int32
	flags               uint64
}

const (
	isSuspect = 1 << iota
	isBacking
	hasTurn   // next is the host's turn at a shared address
	isParked  // for at least one origin
	hasRobots // the queue has robots.txt fetches, which go first
	isHot     // in memory as a host; the record is out of date

	isAway      = 1 << 31 // in delay: no item of its own was added since the host was created or removed
	hasOwnDelay = 1 << 30 // in delay: the host has its own delay, which is looked up by name

	flagBits   = 6
	countBits  = 4
	rankBits   = 12
	maxCount   = 1<<countBits - 1
	maxDeepest = 1<<rankBits - 1
)

func (s status) pack() uint64 {
	u := uint64(max(s.next, 0))
	u = u<<rankBits | uint64(min(max(s.deepest, 0), maxDeepest))
	u = u<<countBits | uint64(min(s.failures, maxCount))
	u = u<<countBits | uint64(min(s.throttles, maxCount))
	return u<<flagBits | s.flags
}

func unpack(u uint64) (s status) {
	s.flags = u & (1<<flagBits - 1)
	u >>= flagBits
	s.throttles = int(u & maxCount)
	u >>= countBits
	s.failures = int(u & maxCount)
	u >>= countBits
	s.deepest = int32(u & maxDeepest)
	s.next = int64(u >> rankBits)
	return s
}

func (r *record) requestedDelay() time.Duration {
	return time.Duration(r.delay&^(isAway|hasOwnDelay)) * time.Millisecond
}
func (r *record) away() bool { return r.delay&isAway != 0 }

// setRequestedDelay sets the delay that the host requests, and whether it is away.
func (r *record) setRequestedDelay(d time.Duration, away bool) {
	r.delay = r.delay&hasOwnDelay | uint32(min((d+time.Millisecond-1)/time.Millisecond, hasOwnDelay-1))
	if away {
		r.delay |= isAway
	}
}

// setOwnDelay sets whether the host has its own delay.
func (r *record) setOwnDelay(own bool) {
	if r.delay &^= hasOwnDelay; own {
		r.delay |= hasOwnDelay
	}
}

const nextShift = flagBits + 2*countBits + rankBits

func (r *record) next() int64 { return int64(r.state >> nextShift) }
func (r *record) setNext(tick int64) {
	r.state = r.state&(1<<nextShift-1) | uint64(max(tick, 0))<<nextShift
}
func (r *record) is(flag uint64) bool { return r.state&flag != 0 }
func (r *record) set(flag uint64)     { r.state |= flag }
func (r *record) unset(flag uint64)   { r.state &^= flag }
func (r *record) eligible() bool      { return r.count > 0 && (!r.is(isParked) || r.is(hasRobots)) }

func (r *record) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.hi)
	b = binary.LittleEndian.AppendUint64(b, r.state)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.top))
	b = binary.LittleEndian.AppendUint32(b, r.lo)
	b = binary.LittleEndian.AppendUint32(b, r.bucket)
	b = binary.LittleEndian.AppendUint32(b, r.count)
	return binary.LittleEndian.AppendUint32(b, r.delay)
}

func (r *record) parse(b []byte) {
	r.hi, r.state = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	r.top, r.lo = loc(binary.LittleEndian.Uint64(b[16:])), binary.LittleEndian.Uint32(b[24:])
	r.bucket, r.count = binary.LittleEndian.Uint32(b[28:]), binary.LittleEndian.Uint32(b[32:])
	r.delay = binary.LittleEndian.Uint32(b[36:])
}
