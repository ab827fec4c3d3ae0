package history

import (
	"bytes"

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
	done bool
	data []byte // nil if done
}

func (v value) state() State {
	if v.done {
		return Done
	}
	return Dispatched
}

// dispatched is the first byte on disk of a value that is not done.
const dispatched = 1

// append appends the value's encoding on disk, which is empty if it is done.
func (v value) append(b []byte) []byte {
	if v.done {
		return b
	}
	return append(append(b, dispatched), v.data...)
}

func readValue(b []byte) (v value, ok bool) {
	switch {
	case len(b) == 0:
		return value{done: true}, true
	case b[0] != dispatched:
		return v, false
	}
	return value{data: b[1:]}, true
}

// mergeValues merges two values on disk: the newer one, but a URL that was done stays done.
func mergeValues(newer, older []byte) []byte {
	if len(older) == 0 {
		return newer[:0]
	}
	return newer
}
