package fetch

import (
	"errors"
	"io"
	"net/http"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
)

// An intake is where the bytes of an answer go: into memory, as long as the budget has some, and from then on to the
// disk. So a server that takes its time holds little memory, however much it has sent; and what the budget lends comes
// back as soon as a processor has time for the answer. HTTP/1 and HTTP/2 share it: before each read they call makeRoom.
type intake struct {
	raw   []byte // of the answer, what is not on the disk
	frame framer // of raw; over HTTP/2 only its positions are used

	paused bool // the server was not read for a while

	raws, payloads *vfs.Spool // on the disk; nil if all is in memory
	spilled        int        // bytes of the answer that are on the disk, and no longer in raw
}

// openIntake begins with the buffers of an earlier answer, if the budget has room for them.
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
	x.frame = framer{maxHead: c.cfg.MaxHeader, maxBody: x.maxBody, noBody: x.req.Head, fields: b.Header,
		chunks: b.Chunks[:0]}
}

// total is how long the answer is so far.
func (x *exchange) total() int { return x.spilled + len(x.raw) }

// makeRoom makes room for a read where there is less than want, and less than readSize/4. All before frame.pos is
// understood and may leave memory, once the head is complete.
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
	if cap(x.raw)-len(x.raw) < readSize/4 { // a line that does not end
		return x.waitForMemory(readSize)
	}
	return nil
}

// grow gives the buffers more memory. It reports false if that cannot be had.
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

// grown is the capacity that b should have for want bytes more: what is just asked for, or more so that it is not asked
// for often.
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

// extraSize is by how much a buffer that grows exceeds what each has for nothing.
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

// patience is how long is waited between two looks at whether there is room.
const roomInterval = 20 * time.Millisecond

// waitForMemory waits for memory for a head, which cannot go to the disk, while the server is not read. Its fields take as
// much again.
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

// waitForRoom lets others give room back. It fails when the exchange has no time left.
func (x *exchange) waitForRoom() error {
	x.paused = true
	wait := min(roomInterval, time.Until(x.deadline))
	if wait <= 0 {
		return errTimeout
	}
	return sleep(x.parent, wait)
}

// spill puts on the disk what is understood of the answer, with what there is of its payload, and returns what memory
// was lent for it.
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

// write writes to the disk, and waits as long as the exchange may take where that has no room. It returns how much is
// written.
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

// A diskError is a fault of this machine's, not of the server's.
type diskError struct{ error }

func (e *diskError) Unwrap() error { return e.error }

func isDiskFault(err error) bool {
	_, is := errors.AsType[*diskError](err)
	return is
}

// settle gives the response its answer: from the final head on, wherever it lies.
func (x *exchange) storeAnswer() error {
	resp, f := x.resp, &x.frame
	if x.raws == nil {
		x.storeInMemory()
		return nil
	}
	f.pos = len(x.raw) // whatever comes behind what is understood
	if err := x.spill(); err != nil {
		if isDiskFault(err) {
			return err
		}
		resp.Truncated = page.Time // the disk had no room in time
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

// storeInMemory gives the response an answer that is in memory.
func (x *exchange) storeInMemory() {
	resp, f := x.resp, &x.frame
	x.raw = x.raw[:copy(x.raw, x.raw[f.start:])]
	resp.Raw, resp.HeadLen = x.raw, f.end-f.start
	if resp.Payload = x.raw[resp.HeadLen:]; f.head.chunked {
		resp.Payload = f.chunks
	}
}

// A part is a stretch from some place on.
type tailReader struct {
	page.Spool
	offset int64
}

func (p tailReader) Len() int64 { return p.Spool.Len() - p.offset }

func (p tailReader) ReadAt(b []byte, off int64) (int, error) { return p.Spool.ReadAt(b, off+p.offset) }

var _ io.ReaderAt = tailReader{}

// discard says that n bytes at the beginning of raw are there no more.
func (f *framer) discard(n int) { f.pos, f.seen = f.pos-n, max(0, f.seen-n) }

// room is what the next read should have at least: the rest of the body where that is known, in steps if it is said to
// be huge.
func (f *framer) nextReadSize() int {
	if f.state == plainBody {
		return int(min(f.left, maxTrust))
	}
	return 0
}
