package run

import "runtime"

// maxAhead is how many bytes are read at once for sequential access.
const maxAhead = 256 << 10

// A window is a sequence of blocks of the file in memory. It grows with sequential access, and shrinks to one block
// after a jump.
type window struct {
	r        *Reader
	buf      []byte
	at       int64 // position of buf in the file
	from, to int   // blocks in buf
	ahead    int64
	block    block // the decoded entries of one block
	have     int   // the index of that block, plus 1
	room     block // buffer for decoding
}

// entries returns the entries of block i, valid until the next call.
func (w *window) entries(i int) (block, error) {
	if w.have == i+1 {
		return w.block, nil
	}
	runtime.Gosched() // offers must not wait for merges on all processors
	if i < w.from || i >= w.to {
		if err := w.fill(i); err != nil {
			return block{}, w.r.damaged(err)
		}
	}
	x := &w.r.index
	off := x.at[i] - w.at
	b := w.buf[off : off+int64(x.size[i])]
	w.have = 0
	b, err := unseal(b)
	if err == nil {
		w.block, err = decode(&w.room, b)
	}
	if err != nil {
		return block{}, w.r.damaged(err)
	}
	w.have = i + 1
	return w.block, nil
}

func (w *window) fill(i int) error {
	x := &w.r.index
	if i == w.to && w.to > 0 {
		w.ahead = min(2*max(w.ahead, blockSize), maxAhead)
	} else {
		w.ahead = 0
	}
	start, end, to := x.at[i], x.at[i]+int64(x.size[i]), i+1
	for to < x.len() && x.at[to] >= end && x.at[to]+int64(x.size[to])-start <= w.ahead {
		end = x.at[to] + int64(x.size[to])
		to++
	}
	w.from, w.to, w.have = 0, 0, 0
	if n := int(end - start); cap(w.buf) < n {
		w.buf = make([]byte, n)
	} else {
		w.buf = w.buf[:n]
	}
	if err := w.r.readInto(w.buf, start); err != nil {
		return err
	}
	w.at, w.from, w.to = start, i, to
	return nil
}
