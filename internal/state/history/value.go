package history

import (
	"bytes"
	"encoding/binary"

	"kumo/internal/base/xor"
)

// A key on disk is the key of a host (its location in the key space, its name, a zero byte), then the hash of one of
// its URLs.

func appendHost(b []byte, key xor.ID, host string) []byte {
	return append(append(append(b, key[:]...), host...), 0)
}

// A place is a decoded key.
type place struct {
	host []byte // key of the host, including the zero byte
	name []byte
	hash Hash
}

func readPlace(key []byte) (p place, ok bool) {
	if len(key) < xor.Size+2+HashSize {
		return p, false
	}
	end := bytes.IndexByte(key[xor.Size:], 0)
	if end <= 0 {
		return p, false
	}
	p.host, p.name = key[:xor.Size+end+1], key[xor.Size:xor.Size+end]
	rest := key[len(p.host):]
	if len(rest) != HashSize {
		return p, false
	}
	p.hash = Hash(rest)
	return p, true
}

// A value is the data of a URL.
type value struct {
	visit     uint64 // as in URL
	done      bool
	scheduled bool
	data      []byte // nil if done
}

func valueOf(u *URL) value { return value{u.Visit, u.Done, u.Scheduled, u.Data} }

// open reports whether the URL must be fetched now.
func (v *value) open() bool { return !v.done && !v.scheduled }

// rank orders the values of one visit.
func (v *value) rank() int {
	switch {
	case v.done:
		return 2
	case v.scheduled:
		return 0
	}
	return 1
}

// advances reports whether v replaces an older value.
func (v *value) advances(old *value) bool {
	if v.visit != old.visit {
		return v.visit > old.visit
	}
	return v.rank() > old.rank()
}

// stateBefore returns the state of v, the previous value, for a record of the value next: see DB.Insert.
func (v *value) stateBefore(next *value) State {
	switch {
	case v.visit > next.visit, v.visit == next.visit && v.done:
		return Done
	case v.open() && (v.visit == next.visit || !next.open()):
		return Dispatched
	}
	return Unknown
}

// The first byte on disk of a value. A value of the first visit that is done is empty. Those of later visits have the
// visit as a uvarint after the first byte.
const (
	dispatched      = 1
	scheduledAgain  = 2
	dispatchedAgain = 3
	doneAgain       = 4
)

// append appends the value's encoding on disk.
func (v value) append(b []byte) []byte {
	switch {
	case v.visit > 0:
		kind := byte(dispatchedAgain)
		if v.done {
			kind = doneAgain
		} else if v.scheduled {
			kind = scheduledAgain
		}
		return append(binary.AppendUvarint(append(b, kind), v.visit), v.data...)
	case v.done:
		return b
	}
	return append(append(b, dispatched), v.data...)
}

func readValue(b []byte) (v value, ok bool) {
	switch {
	case len(b) == 0:
		return value{done: true}, true
	case b[0] == dispatched:
		return value{data: b[1:]}, true
	case b[0] > doneAgain || b[0] < dispatched:
		return v, false
	}
	visit, n := binary.Uvarint(b[1:])
	if n <= 0 || visit == 0 {
		return v, false
	}
	v = value{visit: visit, done: b[0] == doneAgain, scheduled: b[0] == scheduledAgain, data: b[1+n:]}
	if v.done {
		ok = len(v.data) == 0
		v.data = nil
		return v, ok
	}
	return v, true
}

// mergeValues merges two valid values on disk: the newer one, unless the older one is further.
func mergeValues(newer, older []byte) []byte {
	if len(older) == 0 && (len(newer) == 0 || newer[0] == dispatched) {
		return newer[:0]
	}
	a, okA := readValue(newer)
	b, okB := readValue(older)
	if okA && okB && b.advances(&a) {
		return append(newer[:0], older...)
	}
	return newer
}
