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

// readFrames calls f with bodies that have their lengths before them, and with the offset behind each. A body holds
// until f returns.
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

var errChecksum = errors.New("an entry has another checksum")

// appendChecksum appends the checksum of an entry's body.
func appendChecksum(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
}

// verifyChecksum returns a body that was sealed, which is not empty, and whether it is as it was.
func verifyChecksum(sealed []byte) (body []byte, whole bool) {
	n := len(sealed) - crc32.Size
	if n < 1 {
		return nil, false
	}
	body = sealed[:n]
	return body, crc32.Checksum(body, castagnoli) == binary.LittleEndian.Uint32(sealed[n:])
}

const maxFrame = 1 << 20 // bytes of a body
