package stream

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"kumo/internal/state/journal"
)

// An entry of the log is a version byte and a zstd frame with a checksum. The frame contains kind, session, from, to,
// piece, body.
const version = 1

const (
	kindOpen    = 'o' // a process has opened the log
	kindBatches = 'b' // batches; for each the distance of its end from the previous end, its length, its bytes
	kindPiece   = 'p' // a piece of a large batch, not the last
	kindLast    = 'e' // the last piece of a large batch
	kindSeal    = 's' // nothing may follow
)

// maxBody limits the decompressed size of an entry. Entries are written with less than half of it.
const maxBody = 4 * entryBytes

type entry struct {
	kind    byte
	session uint64           // of the process that wrote it
	from    journal.Position // local position before the entry's data
	to      journal.Position // local position after it: the end of its last complete batch
	piece   uint64           // index of the piece
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
			return fmt.Errorf("%w: truncated batch after %x", ErrDamaged, uint64(at))
		}
		data := rest[n+m : n+m+int(size)]
		at, rest = at+journal.Position(distance), rest[n+m+int(size):]
		if err := f(data, at); err != nil {
			return err
		}
	}
	if at != e.to {
		return fmt.Errorf("%w: an entry up to %x has batches up to %x", ErrDamaged, uint64(e.to), uint64(at))
	}
	return nil
}

var (
	packer = sync.OnceValue(func() *zstd.Encoder {
		// it fails only for invalid options
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
		return nil, fmt.Errorf("%w: an entry begins with %q, not with version %d", ErrDamaged,
			data[:min(len(data), 8)], version)
	}
	rest, err := unpacker().DecodeAll(data[1:], nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(rest) == 0 {
		return nil, fmt.Errorf("%w: empty entry", ErrDamaged)
	}
	e := &entry{kind: rest[0]}
	rest = rest[1:]
	for _, field := range []*uint64{&e.session, (*uint64)(&e.from), (*uint64)(&e.to), &e.piece} {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			return nil, fmt.Errorf("%w: truncated entry of kind %q", ErrDamaged, e.kind)
		}
		*field, rest = n, rest[size:]
	}
	e.body = rest
	return e, nil
}
