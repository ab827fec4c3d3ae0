package natsbus

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"kumo/internal/cluster/bus"
)

// A watcher follows the registry. It receives each write from the servers. By the numbers it notices what it has
// missed, and reads that. It also reads after a while without updates, in case the last one was lost.
type watcher struct {
	bus     *Bus
	watched string // key, or beginning of keys
	emit    func(bus.Entry)
	upTo    uint64 // everything up to this number is reported
	isQuiet bool   // no update has come since the last tick
	// keys reported before the start is complete; deletions are reported only of these, as a server that lags behind
	// may have had their values
	reported map[string]bool
}

// Watch calls f with the current values and with each change.
func (b *Bus) Watch(ctx context.Context, keys string, f func(bus.Entry)) error {
	if b.isClosed() {
		return bus.ErrClosed
	}
	if b.cluster.maxAge > 0 {
		return errNoWatch
	}
	news := make(chan *nats.Msg, 1024)
	stop, err := b.cluster.subscribe(news)
	if err != nil {
		return fmt.Errorf("watch %q: %w", keys, asClosed(err))
	}
	defer stop()
	w := &watcher{bus: b, watched: keys, emit: f}
	if err := w.begin(ctx); err != nil {
		return err
	}
	f(bus.Entry{})
	return w.follow(ctx, news)
}

// begin reports the current values. It retries until it reaches the cluster.
func (w *watcher) begin(ctx context.Context) error {
	w.reported = map[string]bool{}
	defer func() { w.reported = nil }()
	for mark := uint64(0); ; {
		if mark == 0 {
			mark = w.mark(ctx)
		}
		if mark > 0 {
			w.readCurrent(ctx)
		}
		if mark > 0 && w.upTo >= mark {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.bus.ctx.Done():
			return bus.ErrClosed
		case <-time.After(pause):
		}
	}
}

// mark returns the number of a marker, or 0 if none could be written.
func (w *watcher) mark(ctx context.Context) uint64 {
	c := w.bus.cluster
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timings.Request)
	defer cancel()
	number, err := c.mark(ctx, c.names.registry())
	if err != nil {
		return 0
	}
	return number
}

// follow reports changes.
func (w *watcher) follow(ctx context.Context, news <-chan *nats.Msg) error {
	look := time.NewTicker(w.bus.cluster.cfg.Timings.Watch)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.bus.ctx.Done():
			return bus.ErrClosed
		case <-look.C:
			if w.isQuiet {
				w.read(ctx)
			}
			w.isQuiet = true
		case m := <-news:
			w.isQuiet = false
			w.receive(ctx, m)
		}
	}
}

// receive processes an update: it reports the next write, and reads after a gap.
func (w *watcher) receive(ctx context.Context, m *nats.Msg) {
	number, err := strconv.ParseUint(m.Header.Get(headNumber), 10, 64)
	switch {
	case err != nil || number <= w.upTo:
	case number == w.upTo+1:
		w.apply(stored{m.Header.Get(headSubject), number, m.Header, m.Data})
	default:
		w.read(ctx)
	}
}

// maxCurrent is the number of bytes up to which the values of some keys are read at once.
const maxCurrent = 1 << 20

// readCurrent reports what a server has beyond upTo. It reads only the watched keys, if they fit into one answer: parts
// of servers that have different states would not be one state.
func (w *watcher) readCurrent(ctx context.Context) {
	if w.upTo > 0 || w.watched == "" {
		w.read(ctx)
		return
	}
	c := w.bus.cluster
	asking, cancel := context.WithTimeout(ctx, c.cfg.Timings.Request)
	defer cancel()
	var all []stored
	q := query{Last: []string{c.names.registry().mark, c.names.keys(w.watched)}, MaxBytes: maxCurrent}
	more, err := c.request(asking, c.names.registry(), q, func(m stored) error { all = append(all, m); return nil })
	if more || err != nil {
		w.read(ctx)
		return
	}
	for _, m := range all {
		w.apply(m)
	}
}

// read reports what a server has beyond upTo. After an error, the next call continues.
func (w *watcher) read(ctx context.Context) {
	c := w.bus.cluster
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timings.Request)
	defer cancel()
	for more := true; more; {
		before := w.upTo
		q := query{From: w.upTo + 1, Next: c.names.allRegistry(), Batch: 256, MaxBytes: readBytes}
		var err error
		more, err = c.request(ctx, c.names.registry(), q, func(m stored) error { w.apply(m); return nil })
		if err != nil || w.upTo == before {
			return
		}
	}
}

func (w *watcher) apply(m stored) {
	if m.number <= w.upTo {
		return
	}
	w.upTo = m.number
	key := w.bus.cluster.names.keyOf(m.subject)
	if key == "" || !bus.Covers(w.watched, key) {
		return
	}
	e := bus.Entry{Key: key, Revision: m.number}
	if !deleted(m.header) {
		e.Value = nonNil(m.data)
	} else if w.reported != nil && !w.reported[key] {
		return
	}
	if w.reported != nil {
		w.reported[key] = true
	}
	w.emit(e)
}
