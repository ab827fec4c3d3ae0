package stream

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"kumo/internal/state/journal"
)

// An entry of the log is a byte for the format's version and a zstd frame, which has a checksum, of: kind, session,
// from, to, piece, body.
const version = 1

const (
	kindOpen    = 'o' // a process goes on from here
	kindBatches = 'b' // batches: for each, how far its end is behind that of the one before, its length, its bytes
	kindPiece   = 'p' // a piece of a batch, of which more follow
	kindLast    = 'e' // the last piece of a batch
	kindSeal    = 's' // nothing may follow
)

// maxBody bounds what an entry may inflate to. Written is less than half of it.
const maxBody = 4 * entryBytes

type entry struct {
	kind    byte
	session uint64           // of the process that wrote it
	from    journal.Position // where the local journal was before what the entry has
	to      journal.Position // and after it: the end of its last whole batch
	piece   uint64           // 0 for the first
	body    []byte
}

func (e *entry) addBatch(data []byte, distance journal.Position) {
	e.body = binary.AppendUvarint(e.body, uint64(distance))
	e.body = binary.AppendUvarint(e.body, uint64(len(data)))
	e.body = append(e.body, data...)
}

// batches calls f with each batch of the entry.
func (e *entry) batches(f func(data []byte, end journal.Position) error) error {
	at, rest := e.from, e.body
	for len(rest) > 0 {
		distance, n := binary.Uvarint(rest)
		size, m := binary.Uvarint(rest[max(n, 0):])
		if n <= 0 || m <= 0 || size > uint64(len(rest)-n-m) {
			return fmt.Errorf("%w: a batch behind %x ends early", ErrDamaged, uint64(at))
		}
		data := rest[n+m : n+m+int(size)]
		at, rest = at+journal.Position(distance), rest[n+m+int(size):]
		if err := f(data, at); err != nil {
			return err
		}
	}
	if at != e.to {
		return fmt.Errorf("%w: batches up to %x end at %x", ErrDamaged, uint64(e.to), uint64(at))
	}
	return nil
}

var (
	packer = sync.OnceValue(func() *zstd.Encoder {
		// fails for bad options only
		z, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		return z
	})
	unpacker = sync.OnceValue(func() *zstd.Decoder {
		z, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBody))
		return z
	})
)

func (e *entry) encode() []byte {
	plain := make([]byte, 0, len(e.body)+48)
	plain = append(plain, e.kind)
	for _, n := range []uint64{e.session, uint64(e.from), uint64(e.to), e.piece} {
		plain = binary.AppendUvarint(plain, n)
	}
	plain = append(plain, e.body...)
	return packer().EncodeAll(plain, []byte{version})
}

func decode(data []byte) (*entry, error) {
	if len(data) == 0 || data[0] != version {
		return nil, fmt.Errorf("%w: it has an entry that begins with %q, not with version %d", ErrDamaged,
			data[:min(len(data), 8)], version)
	}
	rest, err := unpacker().DecodeAll(data[1:], nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(rest) == 0 {
		return nil, fmt.Errorf("%w: it has an empty entry", ErrDamaged)
	}
	e := &entry{kind: rest[0]}
	rest = rest[1:]
	for _, field := range []*uint64{&e.session, (*uint64)(&e.from), (*uint64)(&e.to), &e.piece} {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			return nil, fmt.Errorf("%w: an entry of kind %q ends early", ErrDamaged, e.kind)
		}
		*field, rest = n, rest[size:]
	}
	e.body = rest
	return e, nil
}
