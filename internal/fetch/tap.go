package fetch

import (
	"errors"
	"io"
	"net"
	"sync"
)

// readBuffer is the size of net/http's buffer for a connection.
const readBuffer = 16 << 10

var errFull = errors.New("answer is longer than the limit")

// A recording holds the bytes of one exchange. While it is attached to a tap, the tap's mutex guards it.
type recording struct {
	in, out []byte
	frame   framer // of in
	max     int    // bound of in
	reused  bool   // the connection had an earlier exchange
	ended   bool   // the connection is at its end
}

// restart empties the recording for another connection.
func (rec *recording) restart(reused bool) {
	*rec = recording{in: rec.in[:0], out: rec.out[:0], max: rec.max, reused: reused}
}

// add records what has arrived and returns how much of it belongs to the answer.
func (rec *recording) add(p []byte) (int, error) {
	before := len(rec.in)
	p = p[:min(len(p), rec.max-before)]
	rec.in = append(rec.in, p...)
	end := rec.frame.advance(rec.in)
	rec.in = rec.in[:end]
	if len(rec.in) == rec.max {
		return 0, errFull
	}
	return end - before, nil
}

// A tap is an HTTP/1 connection that records. net/http reads it from a goroutine of its own, also between exchanges, to
// notice when the server closes it; that is what the mutex and the care about stray bytes are for.
type tap struct {
	net.Conn
	wire  *wire
	begun chan struct{} // closed by the first write or by Close

	mu      sync.Mutex
	once    bool       // begun is closed
	spoiled bool       // stray bytes have come
	rec     *recording // nil between exchanges
}

func newTap(l link) *tap { return &tap{Conn: l.conn, wire: l.wire, begun: make(chan struct{})} }

// attach records into rec from now on.
func (t *tap) attach(rec *recording) {
	t.mu.Lock()
	t.rec = rec
	t.mu.Unlock()
}

// detach ends the recording into rec, which is the caller's alone from then on. Another exchange may have the connection by now:
// its recording stays.
func (t *tap) detach(rec *recording) {
	t.mu.Lock()
	if t.rec == rec {
		t.rec = nil
	}
	t.mu.Unlock()
}

// Write records before it sends, so that an answer never comes before its request.
func (t *tap) Write(p []byte) (int, error) {
	t.begin(p)
	return t.Conn.Write(p)
}

func (t *tap) begin(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rec != nil {
		t.rec.out = append(t.rec.out, p...)
	}
	if !t.once {
		t.once = true
		close(t.begun)
	}
}

// Read waits for the first request to be sent: what a server says before it is asked counts as its answer. Later, bytes that
// no request has asked for must not pass for the next one's answer: they end the connection.
func (t *tap) Read(p []byte) (int, error) {
	<-t.begun
	n, err := t.Conn.Read(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	rec := t.rec
	if rec != nil && err != nil {
		rec.ended = true
	}
	switch {
	case t.spoiled || n > 0 && (rec == nil || rec.reused && len(rec.out) == 0):
		return 0, t.spoil()
	case n == 0:
		return 0, err
	}
	kept, full := rec.add(p[:n])
	switch {
	case full != nil:
		return 0, full
	case kept == 0:
		return 0, t.spoil()
	case kept < n:
		_ = t.spoil() // the next read says it
		return kept, nil
	}
	return n, err
}

// spoil ends a connection with stray bytes. To net/http it looks closed by the server, so that a request which has just got hold
// of it is repeated.
func (t *tap) spoil() error {
	t.spoiled = true
	t.Conn.Close()
	return io.EOF
}

// Close unblocks a Read that waits for the first request.
func (t *tap) Close() error {
	err := t.Conn.Close()
	t.begin(nil)
	return err
}
