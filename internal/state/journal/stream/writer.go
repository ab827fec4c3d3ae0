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

// A writer appends entries to a log one at a time, and retries each until it is stored or permanently refused.
type writer struct {
	logs        Logs
	name        string
	session     uint64
	cfg         Config
	last        uint64 // the log's last entry, whose content is known
	sent        int64  // bytes of entries added
	unreachable bool   // the log is unreachable, and that was reported
}

func newWriter(logs Logs, name string, session uint64, cfg Config) *writer {
	return &writer{logs: logs, name: name, session: session, cfg: cfg}
}

// open fences the log: entries in transit from other processes are rejected from now on. It returns the position up to
// which the log contains the journal.
func (w *writer) open(ctx context.Context) (journal.Position, error) {
	for {
		at, err := w.end(ctx)
		if err != nil {
			return 0, err
		}
		err = w.add(ctx, &entry{kind: kindOpen, from: at, to: at})
		if !errors.Is(err, ErrFenced) { // an entry in transit came first
			return at, err
		}
	}
}

// end finds the log's last entry, and returns the position up to which the log contains the journal. It also does so
// with ErrSealed.
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

// add appends an entry after the last. It returns ErrFenced or ErrSealed if another process has written to the log.
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

// resolveConflict determines which entry was appended instead. If it is an earlier attempt of the same entry, it
// returns its number.
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
	case n < w.last: // a log is deleted only after its node's state was taken over
		return 0, fmt.Errorf("%w: it ends at entry %d, after entry %d was written", ErrSealed, n, w.last)
	case n == w.last: // the server that replied does not have the new entry yet
		return 0, fmt.Errorf("%w: the entry after %d is not available yet", bus.ErrUnavailable, n)
	}
	return 0, ErrFenced
}

// retry calls f until it succeeds, ctx ends, or the error is permanent.
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

// isPermanent reports whether retrying cannot fix an error.
func isPermanent(err error) bool {
	for _, e := range []error{ErrSealed, ErrFenced, ErrDamaged, bus.ErrTooLarge, bus.ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// pause waits, and returns false if ctx has ended.
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
