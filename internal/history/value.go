package history

import (
	"bytes"
	"encoding/binary"
	"math"

	"kumo/internal/xor"
)

// A key on the disk is a host's: its place in the space, its name, a zero; for one of its URLs the hash follows. So the
// host's own value comes before those of its URLs.

func appendHost(b []byte, key xor.ID, host string) []byte {
	return append(append(append(b, key[:]...), host...), 0)
}

// A place is a key taken apart.
type place struct {
	host []byte // of the key, the zero included
	name []byte
	url  bool
	hash Hash
}

func (p *place) id() xor.ID { return xor.ID(p.host) }

func readPlace(key []byte) (p place, ok bool) {
	if len(key) < xor.Size+2 {
		return p, false
	}
	end := bytes.IndexByte(key[xor.Size:], 0)
	if end <= 0 {
		return p, false
	}
	p.host, p.name = key[:xor.Size+end+1], key[xor.Size:xor.Size+end]
	switch rest := key[len(p.host):]; len(rest) {
	case 0:
	case HashSize:
		p.url, p.hash = true, Hash(rest)
	default:
		return p, false
	}
	return p, true
}

// A value is what is known of a URL, or to whom a host is assigned: then data is the target. Values are a lattice, of
// which more is the order: done is the greatest.
type value struct {
	done bool
	at   uint32
	data []byte
}

// more reports whether v says something that other does not.
func (v value) more(other value) bool {
	switch {
	case v.done || other.done:
		return !other.done
	case v.at != other.at:
		return v.at > other.at
	}
	return bytes.Compare(v.data, other.data) > 0
}

// append appends the value as it is on the disk: nothing for done.
func (v value) append(b []byte) []byte {
	if v.done {
		return b
	}
	return append(binary.AppendUvarint(b, uint64(v.at)), v.data...)
}

func readValue(b []byte) (v value, ok bool) {
	if len(b) == 0 {
		return value{done: true}, true
	}
	at, n := binary.Uvarint(b)
	if n <= 0 || at > math.MaxUint32 {
		return v, false
	}
	return value{at: uint32(at), data: b[n:]}, true
}

// fold makes one value of two on the disk.
func fold(newer, older []byte) []byte {
	v, okV := readValue(newer)
	w, okW := readValue(older)
	switch {
	case !okW, okV && !w.more(v):
		return newer
	}
	return append(newer[:0], older...)
}
