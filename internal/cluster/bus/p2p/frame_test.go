package p2p

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"kumo/internal/cluster/bus"
)

// readFrames reads all messages that a reader has.
func readFrames(from io.Reader) (messages [][]byte, held int, err error) {
	r := &frameReader{from: from, acquireLarge: func(n int) error { held += n; return nil }, release: func(n int) { held -= n }}
	defer func() { r.drop() }()
	for {
		frames, n, err := r.next()
		if err != nil {
			r.drop()
			return messages, held, err
		}
		eachFrame(frames, func(data []byte) { messages = append(messages, bytes.Clone(data)); n-- })
		if n != 0 {
			return nil, held, errors.New("the number of frames is wrong")
		}
	}
}

func TestFramesComeAsTheyWere(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var want [][]byte
	var stream []byte
	for _, size := range []int{0, 1, 127, 128, 0, 500, 511, 512, 513, 100_000, 0, 3, 65_533, 65_536, bus.MaxData, 1, 1} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		want = append(want, data)
		stream = appendFrame(stream, data)
	}
	for range 5000 {
		want = append(want, stream[:random.IntN(300)])
		stream = appendFrame(stream, want[len(want)-1])
	}
	for name, r := range map[string]io.Reader{
		"whole": bytes.NewReader(stream), "halves": iotest.HalfReader(bytes.NewReader(stream)),
		"bytes":  iotest.OneByteReader(bytes.NewReader(stream)),
		"errors": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		got, held, err := readFrames(r)
		if !errors.Is(err, io.EOF) || len(got) != len(want) || held != 0 {
			t.Errorf("%s: %d messages of %d, %v; %d bytes are held", name, len(got), len(want), err, held)
			continue
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("%s: message %d differs", name, i)
			}
		}
	}
}

func TestFramesThatAreNone(t *testing.T) {
	for name, stream := range map[string][]byte{
		"a byte too much":   binary.AppendUvarint(nil, bus.MaxData+1),
		"a length of 2^63":  binary.AppendUvarint(nil, 1<<63),
		"no end of lengths": bytes.Repeat([]byte{0xff}, 100),
		"behind a good one": append(appendFrame(nil, []byte("x")), 0xff, 0xff, 0xff, 0xff),
	} {
		if _, held, err := readFrames(bytes.NewReader(stream)); !errors.Is(err, errGarbage) || held != 0 {
			t.Errorf("%s: %v, %d bytes are held", name, err, held)
		}
	}
	if _, _, err := readFrames(bytes.NewReader([]byte{5, 1})); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a frame that is cut: %v", err)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 'a', 'b', 'c'}, uint8(3))
	f.Add(appendFrame(nil, make([]byte, 700)), uint8(200))
	f.Add([]byte{0xff, 0xff, 0xff, 0x7f}, uint8(1))
	f.Add(appendFrame(nil, make([]byte, 70_000))[:1000], uint8(255))
	f.Fuzz(func(t *testing.T, stream []byte, step uint8) {
		got, held, err := readFrames(&stepReader{stream, int(step) + 1})
		if held != 0 {
			t.Fatalf("%d bytes are held", held)
		}
		if err == nil {
			t.Fatal("it reads on behind the end")
		}
		var again []byte
		for _, data := range got {
			again = appendFrame(again, data)
		}
		if len(again) > len(stream) {
			t.Fatalf("%d bytes were made of %d", len(again), len(stream))
		}
	})
}

// A stepReader returns a few bytes at a time.
type stepReader struct {
	rest []byte
	step int
}

func (r *stepReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), r.step)], r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestQueueDropsTheOldest(t *testing.T) {
	var shared atomic.Int64
	shared.Store(1 << 20)
	q := &queue{maxBytes: 200 << 10, shared: &shared}
	message := func(i int) []byte { return binary.BigEndian.AppendUint32(make([]byte, 996), uint32(i)) }
	dropped := 0
	for i := range 1000 {
		dropped += q.add(message(i))
	}
	if q.size() > 200<<10 || dropped < 790 || dropped > 810 {
		t.Errorf("%d bytes wait, %d were dropped", q.size(), dropped)
	}
	frames, n := q.dequeue()
	next := dropped
	eachFrame(frames, func(data []byte) {
		if got := int(binary.BigEndian.Uint32(data[996:])); got != next {
			t.Errorf("message %d, want %d", got, next)
		}
		next++
	})
	if next != 1000 || n != 1000-dropped {
		t.Errorf("the last is %d, %d were taken", next-1, n)
	}
	if left := shared.Load(); left != 1<<20 {
		t.Errorf("%d bytes are left to share", left)
	}
}

// Some messages can be queued for each peer, regardless of the queues of others.
func TestQueuesShare(t *testing.T) {
	var shared atomic.Int64
	shared.Store(300 << 10)
	var all [10]queue
	for i := range all {
		all[i] = queue{maxBytes: 8 << 20, shared: &shared}
		for range 1000 {
			all[i].add(make([]byte, 1000))
		}
	}
	total := 0
	for i := range all {
		if total += all[i].size(); all[i].size() < reservedQueue-2000 {
			t.Errorf("queue %d holds %d bytes", i, all[i].size())
		}
	}
	if most := 10*reservedQueue + 300<<10; total > most {
		t.Errorf("%d bytes wait, %d may", total, most)
	}
	if all[9].add(make([]byte, 2*reservedQueue)) == 0 || all[9].count != 0 {
		t.Error("a message for which there is no room was taken")
	}
	for i := range all {
		all[i].dequeue()
	}
	if shared.Load() != 300<<10 {
		t.Errorf("%d bytes are left", shared.Load())
	}
}

func TestPace(t *testing.T) {
	p := &rateLimiter{messages: 100, bytes: 1000}
	now := time.Unix(1, 0)
	for _, c := range []struct {
		after           time.Duration
		messages, bytes int
		wait            time.Duration
	}{
		{0, 100, 10, 0},
		{0, 50, 10, 500 * time.Millisecond},
		{time.Second, 1, 1980, 980 * time.Millisecond},
		{time.Hour, 1, 1000, 0},
		{time.Hour, 1, 4000, 3 * time.Second},
	} {
		now = now.Add(c.after)
		if got := p.reserve(now, c.messages, c.bytes).Round(10 * time.Millisecond); got != c.wait {
			t.Errorf("after %v %d messages of %d bytes wait for %v, want %v", c.after, c.messages, c.bytes, got, c.wait)
		}
	}
}
