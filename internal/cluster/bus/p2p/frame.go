package p2p

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"kumo/internal/cluster/bus"
)

var errGarbage = errors.New("it sends what no node does")

const (
	smallBuffer = 512      // bytes with which a peer is read that says little
	largeBuffer = 64 << 10 // with which one that says much
	maxHead     = 4        // bytes of a length, which is at most bus.MaxData
)

// appendFrame appends a message as it travels: its length as a varint, then its bytes.
func appendFrame(b, data []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

// frameSize is how many bytes the frame takes that b begins with, and how many of these are its length; 0, if b ends
// within that.
func frameSize(b []byte) (size, head int, err error) {
	n, head := binary.Uvarint(b[:min(len(b), maxHead)])
	switch {
	case head == 0 && len(b) < maxHead:
		return 0, 0, nil
	case head <= 0 || n > bus.MaxData:
		return 0, 0, fmt.Errorf("a message longer than %d bytes: %w", bus.MaxData, errGarbage)
	}
	return head + int(n), head, nil
}

func eachFrame(b []byte, f func(data []byte)) {
	for len(b) > 0 {
		size, head, _ := frameSize(b)
		f(b[head:size:size])
		b = b[size:]
	}
}

var largeBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}

// A frameReader reads frames, as many at a time as there are. What it holds grows with what comes: a peer that is
// silent costs smallBuffer bytes.
type frameReader struct {
	from   io.Reader
	small  [smallBuffer]byte
	pooled *[largeBuffer]byte
	buf    []byte // small, pooled, or one for a message that is larger
	begin  int    // buf[begin:end] has come and was not given out
	end    int

	// acquireLarge is asked before memory is taken for a message beyond largeBuffer, and may wait; release takes it back.
	acquireLarge func(size int) error
	release      func(size int)
}

// next returns whole frames, n of them, one at least. They are valid until it is called again.
func (r *frameReader) next() (frames []byte, n int, err error) {
	if r.buf == nil {
		r.buf = r.small[:]
	}
	for {
		frames, n, need, err := r.whole()
		if n > 0 || err != nil {
			return frames, n, err
		}
		if err := r.makeRoom(need); err != nil {
			return nil, 0, err
		}
		got, err := r.from.Read(r.buf[r.end:])
		r.end += got
		if got == 0 && err != nil {
			if errors.Is(err, io.EOF) && r.begin < r.end {
				err = io.ErrUnexpectedEOF
			}
			return nil, 0, err
		}
	}
}

// whole takes the whole frames that have come; need is the size of the one that has not come whole, if it is known.
func (r *frameReader) whole() (frames []byte, n, need int, err error) {
	at := r.begin
	for at < r.end {
		size, _, err := frameSize(r.buf[at:r.end])
		if err != nil {
			return nil, 0, 0, err
		}
		if need = size; size == 0 || at+size > r.end {
			break
		}
		at, need = at+size, 0
		n++
	}
	frames, r.begin = r.buf[r.begin:at], at
	return frames, n, need, nil
}

// makeRoom sees to it that there is room for more of what has come in part.
func (r *frameReader) makeRoom(need int) error {
	rest := r.buf[r.begin:r.end]
	full := r.end == len(r.buf)
	switch {
	case need > largeBuffer && need > len(r.buf):
		if err := r.acquireLarge(need); err != nil {
			return err
		}
		r.moveTo(make([]byte, need), rest)
	case len(rest) == 0 && (len(r.buf) > largeBuffer || len(r.buf) > smallBuffer && r.end <= smallBuffer):
		r.moveTo(r.small[:], nil) // it has become quiet
	case len(rest) > 0 || full:
		switch {
		case len(r.buf) == smallBuffer && (full || need > smallBuffer): // it says much
			pooled := largeBuffers.Get().(*[largeBuffer]byte)
			r.moveTo(pooled[:], rest)
			r.pooled = pooled
		case r.begin > 0:
			r.end, r.begin = copy(r.buf, rest), 0
		}
	default:
		r.begin, r.end = 0, 0
	}
	return nil
}

func (r *frameReader) moveTo(buf, rest []byte) {
	end := copy(buf, rest)
	r.drop()
	r.buf, r.begin, r.end = buf, 0, end
}

// drop gives back what was taken; next must not be called any more.
func (r *frameReader) drop() {
	if r.pooled != nil {
		largeBuffers.Put(r.pooled)
		r.pooled = nil
	}
	if len(r.buf) > largeBuffer {
		r.release(len(r.buf))
	}
	r.buf = nil
}
