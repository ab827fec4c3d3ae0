package fetch

import (
	"errors"
	"io"
	"net/http"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
)

// An intake stores the bytes of a response: in memory while the budget allows, then on disk. So a slow server holds
// little memory, however much it has sent, and lent memory is returned as soon as a processor can handle the response.
// HTTP/1 and HTTP/2 both call makeRoom before each read.
type intake struct {
	raw   []byte // the part of the response that is not on disk
	frame framer // parser of raw; HTTP/2 uses only its positions

	paused bool // reading stopped for a while to wait for memory

	raws, payloads *vfs.Spool // data on disk; nil if all data is in memory
	spilled        int        // bytes of the response that have moved from raw to disk
}

// openIntake starts with the buffers of an earlier response, if the budget allows.
func (x *exchange) openIntake() {
	b, c := &x.resp.Buffers, x.client
	room := max(0, int64(cap(b.Raw)-readSize)) + int64(cap(b.Chunks))
	if room > 0 && b.Lent == 0 {
		if c.budget.tryAcquire(room, c.budget.bodyLimit()) {
			b.Lent, b.Lender = room, c.budget
		} else {
			b.Raw, b.Chunks = nil, nil
		}
	}
	if b.Header == nil {
		b.Header = make(http.Header, 16)
	}
	x.raw = b.Raw[:0]
	x.frame = framer{maxHead: c.cfg.MaxHeader, maxBody: x.maxBody, bodyLimits: x.bodyLimits,
		noBody: x.req.Head, fields: b.Header,
		chunks: b.Chunks[:0]}
}

// total returns the length of the response so far.
func (x *exchange) total() int { return x.spilled + len(x.raw) }

// makeRoom ensures space for a read of want bytes, or at least readSize/4. All data before frame.pos has been parsed
// and may move to disk once the head is complete.
func (x *exchange) makeRoom(want int) error {
	if x.raws != nil {
		want = 0
	}
	free := cap(x.raw) - len(x.raw)
	grows := x.frame.head.chunked && cap(x.frame.chunks)-len(x.frame.chunks) < max(free, readSize/4)
	if free >= max(want, readSize/4) && !grows {
		return nil
	}
	want = max(want, readSize)
	switch {
	case x.frame.end == 0:
		return x.waitForMemory(want)
	case x.raws == nil && x.grow(want):
		return nil
	}
	if err := x.spill(); err != nil {
		return err
	}
	if cap(x.raw)-len(x.raw) < readSize/4 { // an unfinished line fills the buffer
		return x.waitForMemory(readSize)
	}
	return nil
}

// grow enlarges the buffers. It returns false if the budget is exhausted.
func (x *exchange) grow(want int) bool {
	most := x.client.budget.maxInMemory()
	raw, chunks := grown(x.raw, want, most), cap(x.frame.chunks)
	if x.frame.head.chunked {
		chunks = grown(x.frame.chunks, raw-len(x.raw), most)
	}
	more := extraSize(raw, cap(x.raw)) + extraSize(chunks, cap(x.frame.chunks))
	if raw > most || chunks > most || !x.borrow(more, x.client.budget.bodyLimit()) {
		return false
	}
	x.raw = resized(x.raw, raw)
	x.frame.chunks = resized(x.frame.chunks, chunks)
	return true
}

// grown returns the new capacity of b for want more bytes. It is larger than needed if possible, so that b grows
// rarely.
func grown(b []byte, want, most int) int {
	need := len(b) + want
	if need <= cap(b) {
		return cap(b)
	}
	return max(need, min(2*cap(b), most))
}

func resized(b []byte, size int) []byte {
	if size == cap(b) {
		return b
	}
	return append(make([]byte, 0, size), b...)
}

// extraSize returns by how many bytes a growing buffer exceeds the free allowance of each response.
func extraSize(size, had int) int { return max(size, readSize) - max(had, readSize) }

// borrow takes n bytes from the budget.
func (x *exchange) borrow(n int, most int64) bool {
	if n > 0 && !x.client.budget.tryAcquire(int64(n), most) {
		return false
	}
	b := &x.resp.Buffers
	b.Lent, b.Lender = b.Lent+int64(n), x.client.budget
	return true
}

// roomInterval is the time between two attempts to get memory or disk space.
const roomInterval = 20 * time.Millisecond

// waitForMemory waits for memory for a head, which cannot go to disk. It does not read from the server meanwhile. The
// parsed fields need the same amount again.
func (x *exchange) waitForMemory(want int) error {
	size := grown(x.raw, want, int(x.client.cfg.MaxHeader))
	for !x.borrow(2*extraSize(size, cap(x.raw)), x.client.budget.size) {
		if err := x.waitForRoom(); err != nil {
			return err
		}
	}
	x.raw = resized(x.raw, size)
	return nil
}

// waitForRoom sleeps so that other exchanges can return memory. It fails if the exchange has no time left.
func (x *exchange) waitForRoom() error {
	x.paused = true
	wait := min(roomInterval, time.Until(x.deadline))
	if wait <= 0 {
		return errTimeout
	}
	return sleep(x.parent, wait)
}

// spill moves the parsed part of the response and its payload to disk, and returns the lent memory.
func (x *exchange) spill() error {
	if x.raws == nil {
		x.raws, x.payloads = x.client.scratch.New(), x.client.scratch.New()
		x.resp.Buffers.Spooled = &page.Spooled{
			Raw:     x.raws,
			Payload: x.payloads,
			Free:    func() { x.raws.Free(); x.payloads.Free() },
		}
		x.raw = x.raw[:copy(x.raw, x.raw[x.frame.start:])]
		x.frame.discard(x.frame.start)
		x.frame.end, x.frame.start = x.frame.end-x.frame.start, 0
	}
	n, err := x.write(x.raws, x.raw[:x.frame.pos])
	x.raw = x.raw[:copy(x.raw, x.raw[n:])]
	x.frame.discard(n)
	x.spilled += n
	if err != nil {
		return err
	}
	n, err = x.write(x.payloads, x.frame.chunks)
	x.frame.chunks = x.frame.chunks[:copy(x.frame.chunks, x.frame.chunks[n:])]
	if err != nil {
		return err
	}
	if b := &x.resp.Buffers; b.Lent > 0 {
		x.raw = append(make([]byte, 0, max(len(x.raw)+readSize, 2*readSize)), x.raw...)
		x.frame.chunks = nil
		b.Lender.Return(b.Lent)
		b.Lent = 0
	}
	if x.frame.head.chunked && cap(x.frame.chunks) < cap(x.raw) {
		x.frame.chunks = make([]byte, 0, cap(x.raw))
	}
	return nil
}

// write writes to disk. If the disk is full, it waits up to the deadline of the exchange. It returns the number of
// bytes written.
func (x *exchange) write(to *vfs.Spool, p []byte) (n int, err error) {
	for n < len(p) {
		m, err := to.Write(p[n:])
		n += m
		switch {
		case err == nil:
		case errors.Is(err, vfs.ErrNoRoom), vfs.IsFull(err):
			if err := x.waitForRoom(); err != nil {
				return n, err
			}
		default:
			return n, &diskError{err}
		}
	}
	return n, nil
}

// A diskError is a fault of the local disk, not of the server.
type diskError struct{ error }

func (e *diskError) Unwrap() error { return e.error }

func isDiskFault(err error) bool {
	_, is := errors.AsType[*diskError](err)
	return is
}

// storeAnswer stores the response, from the final head on, in resp.
func (x *exchange) storeAnswer() error {
	resp, f := x.resp, &x.frame
	if x.raws == nil {
		x.storeInMemory()
		return nil
	}
	f.pos = len(x.raw) // also write the data that is not parsed yet
	if err := x.spill(); err != nil {
		if isDiskFault(err) {
			return err
		}
		resp.Truncated = page.Time // the disk had no space in time
		switch {
		case x.spilled == 0:
			x.storeInMemory()
			return nil
		case x.spilled < f.end:
			return err
		}
	}
	resp.Raw, resp.Payload, resp.HeadLen, resp.Spooled = nil, nil, f.end, resp.Buffers.Spooled
	if !f.head.chunked {
		resp.Spooled.Payload = tailReader{x.raws, int64(f.end)}
	}
	return nil
}

// storeInMemory stores a response that is in memory.
func (x *exchange) storeInMemory() {
	resp, f := x.resp, &x.frame
	x.raw = x.raw[:copy(x.raw, x.raw[f.start:])]
	resp.Raw, resp.HeadLen = x.raw, f.end-f.start
	if resp.Payload = x.raw[resp.HeadLen:]; f.head.chunked {
		resp.Payload = f.chunks
	}
}

// A tailReader reads a spool from an offset on.
type tailReader struct {
	page.Spool
	offset int64
}

func (p tailReader) Len() int64 { return p.Spool.Len() - p.offset }

func (p tailReader) ReadAt(b []byte, off int64) (int, error) { return p.Spool.ReadAt(b, off+p.offset) }

var _ io.ReaderAt = tailReader{}

// discard adjusts the positions after n bytes were removed from the beginning of raw.
func (f *framer) discard(n int) { f.pos, f.seen = f.pos-n, max(0, f.seen-n) }

// nextReadSize returns the minimum buffer space for the next read: the rest of the body if it is known, limited for
// huge bodies.
func (f *framer) nextReadSize() int {
	if f.state == plainBody {
		return int(min(f.left, maxTrust))
	}
	return 0
}
