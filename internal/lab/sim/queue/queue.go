// Package queue has queues for simulations: scheduled events, priority queues and FIFOs.
package queue

import "time"

// Forever is later than the end of any run.
const Forever = time.Duration(1) << 62

// An Agenda holds scheduled entries, ordered by time and then by insertion. Entries are plain data, so that the
// millions of a run need no allocation each.
type Agenda[E any] struct {
	heap []entry[E] // a 4-ary heap: half as deep as a binary one, and four children fill a cache line
	seq  uint64
}

type entry[E any] struct {
	at   time.Duration
	seq  uint64
	what E
}

func (e *entry[E]) before(o *entry[E]) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// Next returns the time of the first entry; Forever if the agenda is empty.
func (a *Agenda[E]) Next() time.Duration {
	if len(a.heap) == 0 {
		return Forever
	}
	return a.heap[0].at
}

// Put adds an entry.
func (a *Agenda[E]) Put(at time.Duration, what E) {
	a.seq++
	e := entry[E]{at, a.seq, what}
	a.heap = append(a.heap, e)
	i := len(a.heap) - 1
	for up := (i - 1) / 4; i > 0 && e.before(&a.heap[up]); up = (i - 1) / 4 {
		a.heap[i] = a.heap[up]
		i = up
	}
	a.heap[i] = e
}

// Take removes and returns the first entry. The agenda must not be empty.
func (a *Agenda[E]) Take() E {
	h, end := a.heap, len(a.heap)-1
	top, last := h[0].what, h[end]
	h[end] = entry[E]{}
	h = h[:end]
	a.heap = h
	if end == 0 {
		return top
	}
	i := 0
	for least := 1; least < end; least = 4*i + 1 {
		for c := least + 1; c < min(4*i+5, end); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if !h[least].before(&last) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = last
	return top
}

// A Heap is a priority queue: its first element comes before all others.
type Heap[T interface{ Before(T) bool }] []T

// Push adds an element.
func (q *Heap[T]) Push(x T) {
	*q = append(*q, x)
	h, i := *q, len(*q)-1
	for i > 0 && x.Before(h[(i-1)/2]) {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = x
}

// Pop removes and returns the first element. The heap must not be empty.
func (q *Heap[T]) Pop() T {
	h := *q
	first, x := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	for i := 0; len(h) > 0; {
		next := 2*i + 1
		if next+1 < len(h) && h[next+1].Before(h[next]) {
			next++
		}
		if next >= len(h) || !h[next].Before(x) {
			h[i] = x
			break
		}
		h[i] = h[next]
		i = next
	}
	return first
}

// A FIFO is a first-in, first-out queue.
type FIFO[T any] struct {
	all  []T
	head int
}

// Len returns the number of elements.
func (q *FIFO[T]) Len() int { return len(q.all) - q.head }

// First returns the oldest element.
func (q *FIFO[T]) First() *T { return &q.all[q.head] }

// Push adds an element.
func (q *FIFO[T]) Push(x T) {
	if q.head > len(q.all)/2 {
		n := copy(q.all, q.all[q.head:])
		clear(q.all[n:])
		q.all, q.head = q.all[:n], 0
	}
	q.all = append(q.all, x)
}

// Pop removes and returns the oldest element.
func (q *FIFO[T]) Pop() (x T) {
	x, q.all[q.head] = q.all[q.head], x
	q.head++
	return x
}
