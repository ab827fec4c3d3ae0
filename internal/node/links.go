package node

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/strategy"
)

const (
	pumpEvery = 100 * time.Millisecond // how often is looked for links to send
	pumpLeast = 20 * time.Millisecond  // between two looks
	maxTaking = 16                     // batches that are taken in at once; who sent more sends them again
)

// links brings the engine's links to other nodes, and theirs to it.
type links struct {
	n        *Node
	kick     chan struct{}
	sent     atomic.Int64 // batches
	received atomic.Int64 // batches, counted before anything is done with them

	mu     sync.Mutex // guards below
	taking map[flight]bool
}

// A flight is a batch on its way.
type flight struct {
	from   strategy.Node
	number uint64
}

func newLinks(n *Node) *links {
	return &links{n: n, kick: make(chan struct{}, 1), taking: map[flight]bool{}}
}

// look has the pump look soon.
func (l *links) look() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// pump sends what is to be sent until the node ends.
func (l *links) pump(ctx context.Context) {
	tick := time.NewTicker(pumpEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		owner, kind := l.n.cfg.Router.owner(l.n.self), byte(kindLinks)
		if heir := l.n.executor.heir.Load(); heir != nil {
			owner, kind = func(string) (strategy.Node, bool) { return *heir, true }, kindLegacy
		}
		for _, b := range l.n.cfg.Engine.Batches(time.Now(), owner) {
			l.n.send(b.To, kind, append(binary.AppendUvarint(nil, b.Number), b.Data...))
			l.sent.Add(1)
		}
		if l.n.driver != nil {
			if hosts := l.n.cfg.Engine.Wanted(); len(hosts) > 0 {
				l.n.driver.tell(ctx, strategy.Wanted{Hosts: hosts})
			}
		}
		if !pause(ctx, pumpLeast) {
			return
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-l.kick:
		}
	}
}

// take takes a batch in, beside others, and answers. Where this cannot be done the batch will come again. A legacy is
// links of one that leaves: none is refused.
func (l *links) take(from strategy.Node, data []byte, legacy bool) {
	number, size := binary.Uvarint(data)
	if size <= 0 || !l.begin(flight{from, number}) {
		return
	}
	l.received.Add(1)
	batch := bytes.Clone(data[size:])
	l.n.tasks.Go(func(ctx context.Context) {
		defer l.end(flight{from, number})
		var refused []int
		var err error
		if legacy {
			err = l.n.cfg.Engine.Inherit(ctx, batch)
		} else {
			refused, err = l.n.cfg.Engine.TakeLinks(ctx, batch)
		}
		if err != nil {
			if ctx.Err() == nil {
				l.n.log.Warn("links of another node are not taken", "from", from, "err", err)
			}
			return
		}
		l.n.send(from, kindTaken, answerTo(number, refused))
	})
}

// begin reports whether a batch may be taken in now.
func (l *links) begin(f flight) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taking[f] || len(l.taking) >= maxTaking {
		return false
	}
	l.taking[f] = true
	return true
}

func (l *links) end(f flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.taking, f)
}

// idle reports whether nothing is being taken in.
func (l *links) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.taking) == 0
}

// answerTo is an answer: the batch's number, and how far each refused link lies behind the one before.
func answerTo(number uint64, refused []int) []byte {
	data := binary.AppendUvarint(nil, number)
	last := 0
	for _, i := range refused {
		data = binary.AppendUvarint(data, uint64(i-last))
		last = i
	}
	return data
}

var errAnswer = errors.New("an answer to links that is none")

func readAnswer(data []byte) (number uint64, refused []int, err error) {
	number, n := binary.Uvarint(data)
	last := uint64(0)
	for rest := data[max(n, 0):]; n > 0 && len(rest) > 0; rest = rest[n:] {
		var d uint64
		d, n = binary.Uvarint(rest)
		last += d
		if n <= 0 || last > 1<<30 {
			return 0, nil, errAnswer
		}
		refused = append(refused, int(last))
	}
	if n <= 0 {
		return 0, nil, errAnswer
	}
	return number, refused, nil
}

// answered tells the engine what became of a batch.
func (l *links) answered(from strategy.Node, data []byte) {
	number, refused, err := readAnswer(data)
	if err != nil {
		l.n.log.Warn("a message that cannot be read", "from", from, "err", err)
		return
	}
	l.n.cfg.Engine.Answered(from, number, refused, time.Now())
	l.look()
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
