package statefile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"

	"kumo/internal/state/entry"
)

// readFrames calls f with length-prefixed bodies, and the offset after each. A body is valid until f returns.
func readFrames(src io.Reader, f func(body []byte, end int64) error) error {
	in := bufio.NewReaderSize(src, 1<<20)
	var body []byte
	for end := int64(0); ; {
		n, err := binary.ReadUvarint(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || n == 0 || n > maxFrame {
			return errors.Join(err, entry.ErrShort)
		}
		body = slices.Grow(body[:0], int(n))[:n]
		if _, err := io.ReadFull(in, body); err != nil {
			return err
		}
		end += int64(len(binary.AppendUvarint(nil, n))) + int64(n)
		if err := f(body, end); err != nil {
			return err
		}
	}
}

var errChecksum = errors.New("wrong checksum of an entry")

// appendChecksum appends the checksum of an entry's body.
func appendChecksum(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
}

// verifyChecksum returns a body without its checksum, and whether it is valid and not empty.
func verifyChecksum(sealed []byte) (body []byte, whole bool) {
	n := len(sealed) - crc32.Size
	if n < 1 {
		return nil, false
	}
	body = sealed[:n]
	return body, crc32.Checksum(body, castagnoli) == binary.LittleEndian.Uint32(sealed[n:])
}

const maxFrame = 1 << 20 // bytes of a body
