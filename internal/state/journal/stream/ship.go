package stream

import (
	"context"
	"fmt"

	"kumo/internal/state/journal"
)

// entryBytes is the size of batches in one entry, before compression. A larger batch is split into pieces.
const entryBytes = 512 << 10

// ship appends queued batches to the log until ctx ends or the log accepts no more.
func (j *Journal) ship(ctx context.Context) {
	defer close(j.done)
	err := j.shipAll(ctx)
	if ctx.Err() != nil {
		err = ErrClosed
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.err = err
	j.notify()
}

func (j *Journal) shipAll(ctx context.Context) error {
	for {
		some, err := j.next(ctx)
		if err != nil {
			return err
		}
		if err := j.shipBatches(ctx, some); err != nil {
			return fmt.Errorf("ship the journal to the log %s: %w", j.to.name, err)
		}
		j.dequeue(some)
	}
}

// next waits for batches and returns as many as fit into one entry, at least one.
func (j *Journal) next(ctx context.Context) ([]batch, error) {
	if err := j.await(ctx, func() bool { return len(j.queue) > 0 }); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	n, size := 1, len(j.queue[0].data)
	for n < len(j.queue) && size+len(j.queue[n].data) <= entryBytes {
		size += len(j.queue[n].data)
		n++
	}
	return j.queue[:n:n], nil
}

func (j *Journal) shipBatches(ctx context.Context, some []batch) error {
	from, to := j.Shipped(), some[len(some)-1].end
	if data := some[0].data; len(data) > entryBytes {
		return j.shipPieces(ctx, data, from, to)
	}
	e := entry{kind: kindBatches, from: from, to: to}
	at := from
	for _, b := range some {
		e.addBatch(b.data, b.end-at)
		at = b.end
	}
	return j.to.add(ctx, &e)
}

// shipPieces ships one large batch. Readers ignore it until its last piece is in the log.
func (j *Journal) shipPieces(ctx context.Context, data []byte, from, to journal.Position) error {
	for piece := uint64(0); len(data) > 0; piece++ {
		n := min(len(data), entryBytes)
		e := entry{kind: kindPiece, from: from, to: from, piece: piece, body: data[:n]}
		if n == len(data) {
			e.kind, e.to = kindLast, to
		}
		if err := j.to.add(ctx, &e); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// dequeue removes shipped batches from the queue.
func (j *Journal) dequeue(some []batch) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.shipped = some[len(some)-1].end
	j.addMark()
	for i := range some {
		j.lag -= int64(len(some[i].data))
		j.queue[i] = batch{} // some is a part of the queue
	}
	if j.queue = j.queue[len(some):]; len(j.queue) == 0 {
		j.queue = nil
	}
	j.notify()
}
