package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/state/journal"
)

// A writer appends to a log, one entry at a time, and tries each until it is there or can never be.
type writer struct {
	logs        Logs
	name        string
	session     uint64
	cfg         Config
	last        uint64 // the log's last entry, which is known to be what this one thinks it is
	sent        int64  // bytes of entries that were added
	unreachable bool   // the log could not be reached, and that was said
}

func newWriter(logs Logs, name string, session uint64, cfg Config) *writer {
	return &writer{logs: logs, name: name, session: session, cfg: cfg}
}

// open fences the log: nothing that others had on their way to it can come any more. It returns up to where the log has
// the journal.
func (w *writer) open(ctx context.Context) (journal.Position, error) {
	for {
		at, err := w.end(ctx)
		if err != nil {
			return 0, err
		}
		err = w.add(ctx, &entry{kind: kindOpen, from: at, to: at})
		if !errors.Is(err, ErrFenced) { // what another had on its way came first
			return at, err
		}
	}
}

// end finds the log's last entry, and returns up to where the log has the journal, with ErrSealed, too.
func (w *writer) end(ctx context.Context) (at journal.Position, err error) {
	err = w.retry(ctx, func(ctx context.Context) error {
		n, data, err := w.logs.Last(ctx, w.name)
		if err != nil || n == 0 {
			w.last = n
			return err
		}
		e, err := decode(data)
		if err != nil {
			return err
		}
		if at = e.to; e.kind == kindSeal {
			return ErrSealed
		}
		w.last = n
		return nil
	})
	return at, err
}

// add appends an entry behind the last. ErrFenced and ErrSealed say that somebody else has written.
func (w *writer) add(ctx context.Context, e *entry) error {
	e.session = w.session
	data := e.encode()
	return w.retry(ctx, func(ctx context.Context) error {
		n, err := w.logs.Append(ctx, w.name, data, w.last)
		if errors.Is(err, bus.ErrStale) {
			n, err = w.resolveConflict(ctx, data)
		}
		if err == nil {
			w.last, w.sent = n, w.sent+int64(len(data))
		}
		return err
	})
}

// resolveConflict finds out who was faster: perhaps an earlier try, whose entry's number it returns.
func (w *writer) resolveConflict(ctx context.Context, data []byte) (uint64, error) {
	n, last, err := w.logs.Last(ctx, w.name)
	if err != nil {
		return 0, err
	}
	if bytes.Equal(last, data) {
		return n, nil
	}
	if e, err := decode(last); err == nil && e.kind == kindSeal {
		return 0, ErrSealed
	}
	switch {
	case n < w.last: // only who has folded an estate drops its log
		return 0, fmt.Errorf("%w: it ends at entry %d, and had %d", ErrSealed, n, w.last)
	case n == w.last: // what was asked has not heard of the new one yet
		return 0, fmt.Errorf("%w: but nobody knows what follows entry %d", bus.ErrUnavailable, n)
	}
	return 0, ErrFenced
}

// retry does f until it succeeds, ctx ends, or trying again cannot help.
func (w *writer) retry(ctx context.Context, f func(context.Context) error) error {
	for wait := w.cfg.Backoff; ; wait = min(2*wait, 32*w.cfg.Backoff) {
		one, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
		err := f(one)
		cancel()
		if err == nil || isPermanent(err) {
			w.unreachable = false
			return err
		}
		if ctx.Err() == nil && !w.unreachable {
			w.unreachable = true
			w.cfg.Warn(fmt.Errorf("the log %s: %w", w.name, err))
		}
		if !pause(ctx, wait) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// isPermanent reports whether an error stays the same however often one tries.
func isPermanent(err error) bool {
	for _, e := range []error{ErrSealed, ErrFenced, ErrDamaged, bus.ErrTooLarge, bus.ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// pause waits, and reports whether ctx still goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
