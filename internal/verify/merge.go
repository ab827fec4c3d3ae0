package verify

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// A source gives claims in order, each valid until the next; io.EOF at the end.
type source interface {
	next() (claim, error)
	close() error
}

type memorySource struct {
	*sorter
	at int
}

func (m *memorySource) next() (claim, error) {
	if m.at == len(m.items) {
		return claim{}, io.EOF
	}
	it := m.items[m.at]
	m.at++
	return claim{m.arena[it.url:it.kind], kind(m.arena[it.kind]), m.arena[it.kind+1 : it.end]}, nil
}

func (m *memorySource) close() error { return nil }

type runSource struct {
	f   *os.File
	z   *zstd.Decoder
	in  *bufio.Reader
	buf []byte
}

func openRun(name string) (*runSource, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &runSource{f: f, z: z, in: bufio.NewReader(z)}, nil
}

func (r *runSource) next() (claim, error) {
	n, err := binary.ReadUvarint(r.in)
	if err != nil {
		return claim{}, err
	}
	m, err := binary.ReadUvarint(r.in)
	if err != nil {
		return claim{}, err
	}
	k, err := r.in.ReadByte()
	if err != nil {
		return claim{}, err
	}
	r.buf = slices.Grow(r.buf[:0], int(n+m))[:n+m]
	_, err = io.ReadFull(r.in, r.buf)
	return claim{r.buf[:n], kind(k), r.buf[n:]}, err
}

func (r *runSource) close() error {
	r.z.Close()
	return r.f.Close()
}

// merged gives the claims of several sources.
type merged struct {
	all  []source
	heap claimHeap
}

func openRuns(names []string) (*merged, error) {
	m := &merged{}
	for _, name := range names {
		r, err := openRun(name)
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		m.add(r)
	}
	return m, nil
}

func (m *merged) add(s source) { m.all = append(m.all, s) }

func (m *merged) next() (claim, error) {
	var err error
	switch {
	case m.heap == nil:
		m.heap = claimHeap{}
		for _, s := range m.all {
			if err = m.push(s); err != nil {
				return claim{}, err
			}
		}
		heap.Init(&m.heap)
	case len(m.heap) > 0:
		if m.heap[0].claim, err = m.heap[0].source.next(); errors.Is(err, io.EOF) {
			heap.Pop(&m.heap)
		} else if err != nil {
			return claim{}, err
		} else {
			heap.Fix(&m.heap, 0)
		}
	}
	if len(m.heap) == 0 {
		return claim{}, io.EOF
	}
	return m.heap[0].claim, nil
}

func (m *merged) push(s source) error {
	c, err := s.next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	m.heap = append(m.heap, headed{c, s})
	return err
}

func (m *merged) close() (err error) {
	for _, s := range m.all {
		err = errors.Join(err, s.close())
	}
	return err
}

type headed struct {
	claim
	source source
}

type claimHeap []headed

func (h claimHeap) Len() int           { return len(h) }
func (h claimHeap) Less(i, j int) bool { return h[i].claim.compare(&h[j].claim) < 0 }
func (h claimHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *claimHeap) Push(x any)        { *h = append(*h, x.(headed)) }
func (h *claimHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
