package p2p

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"kumo/internal/cluster/bus"
)

var errGarbage = errors.New("protocol violation")

const (
	smallBuffer = 512      // bytes of the read buffer of a quiet peer
	largeBuffer = 64 << 10 // of a busy one
	maxHead     = 4        // bytes of a message's length, which is at most bus.MaxData
)

// appendFrame appends a message in wire format: its length as a varint, then its bytes.
func appendFrame(b, data []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

// frameSize returns the size of the frame at the start of b, and the size of its length; 0 if b ends within the length.
func frameSize(b []byte) (size, head int, err error) {
	n, head := binary.Uvarint(b[:min(len(b), maxHead)])
	switch {
	case head == 0 && len(b) < maxHead:
		return 0, 0, nil
	case head <= 0 || n > bus.MaxData:
		return 0, 0, fmt.Errorf("message of more than %d bytes: %w", bus.MaxData, errGarbage)
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

// A frameReader reads frames, as many at a time as have arrived. Its buffer grows with the traffic: a silent peer costs
// smallBuffer bytes.
type frameReader struct {
	from   io.Reader
	small  [smallBuffer]byte
	pooled *[largeBuffer]byte
	buf    []byte // small, pooled, or allocated for a larger message
	begin  int    // buf[begin:end] was read and not returned yet
	end    int

	// acquireLarge is called before memory is allocated for a message beyond largeBuffer, and may block; release
	// returns that memory.
	acquireLarge func(size int) error
	release      func(size int)
}

// next returns n complete frames, at least one. They are valid until the next call.
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

// whole returns the complete frames in the buffer. need is the size of the incomplete one after them, if it is known.
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

// makeRoom makes room in the buffer for the rest of an incomplete frame.
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
		r.moveTo(r.small[:], nil) // the peer has become quiet
	case len(rest) > 0 || full:
		switch {
		case len(r.buf) == smallBuffer && (full || need > smallBuffer): // the peer is busy
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

// drop releases the buffers. next must not be called after it.
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
