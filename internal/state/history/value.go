package history

import (
	"bytes"

	"kumo/internal/base/xor"
)

// A key on the disk is a host's: its place in the space, its name, a zero; then the hash of one of
// its URLs.

func appendHost(b []byte, key xor.ID, host string) []byte {
	return append(append(append(b, key[:]...), host...), 0)
}

// A place is a key taken apart.
type place struct {
	host []byte // of the key, the zero included
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

// A value is what is known of a URL.
type value struct {
	done bool
	data []byte // of one that is not done
}

func (v value) state() State {
	if v.done {
		return Done
	}
	return Dispatched
}

// dispatched is the first byte of a value on the disk that is not done.
const dispatched = 1

// append appends the value as it is on the disk: nothing for done.
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

// mergeValues makes one value of two on the disk: the older one where that is done, and the newer is not.
func mergeValues(newer, older []byte) []byte {
	if len(older) == 0 {
		return newer[:0]
	}
	return newer
}
