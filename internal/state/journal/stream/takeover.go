package stream

import (
	"context"
	"errors"
	"fmt"

	"kumo/internal/cluster/bus"
	"kumo/internal/state/journal"
)

// Seal closes a log permanently, even while its writer is active, and returns the end position of the journal in it. It
// retries until ctx ends. A sealed log does not change any more, except that its writer may trim it.
func Seal(ctx context.Context, logs Logs, name string) (journal.Position, error) {
	w := newWriter(logs, name, 0, Config{}.withDefaults())
	for {
		at, err := w.end(ctx)
		if err == nil {
			err = w.add(ctx, &entry{kind: kindSeal, from: at, to: at})
			if errors.Is(err, ErrSealed) { // another node sealed it first
				at, err = w.end(ctx)
			}
		}
		switch {
		case errors.Is(err, ErrFenced): // its writer appended first
			continue
		case err == nil, errors.Is(err, ErrSealed):
			return at, nil
		}
		return 0, fmt.Errorf("seal the log %s: %w", name, err)
	}
}

// Replay calls f with the batches of a log, oldest first and each once, and the local position after each. It includes
// all batches after from, and those before that were not trimmed. f must not retain the slice. If the log is
// unreachable for a while, Replay resumes where it was. It skips batches that were not shipped completely. If the log
// begins after from, the error is journal.ErrDropped.
func Replay(ctx context.Context, logs Logs, name string, from journal.Position,
	f func(data []byte, end journal.Position) error) error {
	w := newWriter(logs, name, 0, Config{}.withDefaults())
	r := &reader{f: f, base: from}
	for wait := w.cfg.Backoff; ; wait = min(2*wait, 32*w.cfg.Backoff) {
		before := r.number
		err := logs.Read(ctx, name, r.number, r.entry)
		if err == nil {
			return nil
		}
		if !errors.Is(err, bus.ErrUnavailable) || r.failed != nil {
			return fmt.Errorf("read the log %s after entry %d: %w", name, r.number, err)
		}
		if r.number > before {
			wait = w.cfg.Backoff
		}
		if !pause(ctx, wait) {
			return fmt.Errorf("read the log %s after entry %d: %w", name, r.number, errors.Join(context.Cause(ctx), err))
		}
	}
}

// A reader assembles batches from the entries of a log.
type reader struct {
	f      func([]byte, journal.Position) error
	base   journal.Position // data before this position may be missing, because it was trimmed
	number uint64           // of the last entry read
	at     journal.Position // the end of the last complete batch
	large  []byte           // pieces of a large batch so far
	pieces uint64
	failed error
}

func (r *reader) entry(number uint64, data []byte) error {
	if number <= r.number {
		return nil
	}
	e, err := decode(data)
	if err == nil {
		err = r.read(e)
	}
	if err != nil {
		r.failed = fmt.Errorf("entry %d: %w", number, err)
		return r.failed
	}
	r.number = number
	return nil
}

func (r *reader) read(e *entry) error {
	switch {
	case e.from == r.at:
	case e.from < r.at || r.number > 0 && e.from > r.base:
		return fmt.Errorf("%w: it ends at %x, but continues from %x", ErrDamaged, uint64(r.at), uint64(e.from))
	case e.from > r.base:
		return fmt.Errorf("%w: it begins at %x, but is needed from %x on", journal.ErrDropped, uint64(e.from), uint64(r.base))
	default: // the part in between was trimmed
		r.at, r.large, r.pieces = e.from, nil, 0
	}
	switch e.kind {
	case kindOpen, kindSeal:
	case kindBatches:
		r.at = e.to
		return e.batches(r.f)
	case kindPiece, kindLast:
		return r.piece(e)
	default:
		return fmt.Errorf("%w: unknown entry kind %q", ErrDamaged, e.kind)
	}
	return nil
}

// piece adds a piece of a large batch. If another process started the batch again, the new pieces replace the old.
func (r *reader) piece(e *entry) error {
	if e.piece == 0 {
		r.large, r.pieces = r.large[:0], 0
	}
	if e.piece != r.pieces && e.from < r.base { // its other pieces were trimmed
		r.at, r.large, r.pieces = e.to, nil, 0
		return nil
	}
	if e.piece != r.pieces {
		return fmt.Errorf("%w: piece %d of the batch after %x follows %d pieces", ErrDamaged, e.piece, uint64(e.from),
			r.pieces)
	}
	r.large, r.pieces = append(r.large, e.body...), r.pieces+1
	if e.kind == kindPiece {
		return nil
	}
	data := r.large
	r.at, r.large, r.pieces = e.to, nil, 0
	return r.f(data, e.to)
}
