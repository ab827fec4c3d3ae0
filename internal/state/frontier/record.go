package frontier

import (
	"encoding/binary"
	"time"
)

// A record is all that is in memory of a cold host: 40 bytes without a pointer. Its name is with its items, in a
// bucket. A host is known by 96 bits of its name's SHA-256: that two of a billion hosts share them has a probability of
// 10^-11, and nobody can make a name that shares them with another's.
type record struct {
	hi     uint64
	state  uint64
	top    loc // the block that the part of its queue behind its front begins with
	lo     uint32
	bucket uint32 // where the front of its queue is, 0 if it does not wait for its time
	count  uint32 // items
	delay  uint32 // that it asks for, in ms; isAway and hasOwnDelay
}

const recordLen = 40

// A status is what a record's state unpacks to.
type status struct {
	next                int64 // tick before which it owes nothing a visit
	failures, throttles int
	deepest             int32
	flags               uint64
}

const (
	isDoubtful = 1 << iota
	isBacking
	hasTurn   // next is its turn at a shared address
	isParked  // for an origin at least
	hasRobots // fetches of robots.txt, which go first
	isHot     // in memory as a host; the record says nothing

	isAway      = 1 << 31 // in delay: the host was removed, and nothing has come back since
	hasOwnDelay = 1 << 30 // in delay: in place of the crawl's; it is known by the host's name only

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

// setRequestedDelay keeps a delay that is asked for, and that of a host that is away.
func (r *record) setRequestedDelay(d time.Duration, away bool) {
	r.delay = r.delay&hasOwnDelay | uint32(min((d+time.Millisecond-1)/time.Millisecond, hasOwnDelay-1))
	if away {
		r.delay |= isAway
	}
}

// setOwnDelay keeps whether the host has a delay in place of the crawl's.
func (r *record) setOwnDelay(own bool) {
	if r.delay &^= hasOwnDelay; own {
		r.delay |= hasOwnDelay
	}
}

func (r *record) next() int64         { return int64(r.state >> (flagBits + 2*countBits + rankBits)) }
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
