package natsbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"kumo/internal/cluster/bus"
)

// The headers that are used: of what is stored, and of what a server answers.
const (
	headExpected = "Nats-Expected-Last-Subject-Sequence"
	headDeleted  = "Kumo-Deleted"
	headSubject  = "Nats-Subject"
	headNumber   = "Nats-Sequence"
	headPrevious = "Nats-Last-Sequence" // in an answer: the message before this one; 0 before the first
)

// A query asks a stream's servers, any of them, for stored messages.
type query struct {
	From     uint64   `json:"seq,omitempty"`
	Next     string   `json:"next_by_subj,omitempty"` // all of this subject, from From on
	Last     []string `json:"multi_last,omitempty"`   // or the last ones of these
	Batch    int      `json:"batch"`
	MaxBytes int      `json:"max_bytes,omitempty"`
}

// stored is a message as a stream keeps it.
type stored struct {
	subject string
	number  uint64
	header  nats.Header
	data    []byte
}

// errIncomplete is an answer of which a part is missing.
var errIncomplete = errors.New("a part of the answer is lost")

// request calls f with what one server answers to a query, in the order of numbers. What a server does not have yet is not
// in its answer; a part that was lost on the way, as when a connection breaks and is back, is errIncomplete.
func (c *Cluster) request(ctx context.Context, s stream, q query, f func(stored) error) error {
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	// one of Request's would bring each answer twice: to this, and to all that Request has asked
	inbox := c.conn.NewInbox()
	sub, err := c.conn.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer drop(sub)
	if err := c.conn.PublishRequest("$JS.API.DIRECT.GET."+s.name, inbox, body); err != nil {
		return err
	}
	for last := uint64(0); ; {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		if previous := m.Header.Get(headPrevious); previous != "" && previous != strconv.FormatUint(last, 10) {
			return errIncomplete
		}
		switch status := m.Header.Get("Status"); status {
		case "":
		case "204": // the end
			return nil
		case "404": // nothing; after something: what came next cannot be read any more
			if last > 0 {
				return errIncomplete
			}
			return nil
		case "503":
			return nats.ErrNoResponders
		default:
			return fmt.Errorf("the server answers %s %s", status, m.Header.Get("Description"))
		}
		number, err := strconv.ParseUint(m.Header.Get(headNumber), 10, 64)
		if err != nil {
			return fmt.Errorf("a stored message without a number: %w", err)
		}
		if err := f(stored{m.Header.Get(headSubject), number, m.Header, m.Data}); err != nil {
			return err
		}
		last = number
	}
}

// mark writes through the majority, and returns the number of what it wrote: whoever has that has all that was
// acknowledged before.
func (c *Cluster) mark(ctx context.Context, s stream) (uint64, error) {
	// only the last one is kept
	m := &nats.Msg{Subject: s.mark, Header: nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}}}
	ack, err := c.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// latest returns the last message of a subject that a majority has; number 0: there is none.
func (b *Bus) latest(ctx context.Context, s stream, subject string) (got stored, err error) {
	c := b.cluster
	err = b.attempt(ctx, func(ctx context.Context) error {
		least, err := c.mark(ctx, s)
		if err != nil {
			return err
		}
		for {
			var has uint64
			got = stored{}
			err := c.request(ctx, s, query{Last: []string{s.mark, subject}, Batch: 2}, func(m stored) error {
				if m.subject == subject {
					got = m
				} else {
					has = m.number
				}
				return nil
			})
			if err != nil || has >= least {
				return err
			}
			if err := b.shortPause(ctx); err != nil { // it lags behind
				return err
			}
		}
	})
	return got, err
}

// shortPause waits a little, for a server to catch up.
func (b *Bus) shortPause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-b.ctx.Done():
		return bus.ErrClosed
	case <-time.After(5 * time.Millisecond):
		return nil
	}
}

// write stores a message if the last one of its subject is number after. A refusal is verified: servers also refuse
// while another write is under way, which may come to nothing.
func (b *Bus) write(ctx context.Context, s stream, m *nats.Msg, after uint64) (uint64, error) {
	if b.isClosed() {
		return 0, bus.ErrClosed
	}
	c, number := b.cluster, uint64(0)
	err := b.attempt(ctx, func(ctx context.Context) error {
		for {
			ack, err := c.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(after),
				jetstream.WithRetryAttempts(0))
			if err == nil {
				number = ack.Sequence
				return nil
			}
			if !isStale(err) {
				return err
			}
			is, asking := b.latest(ctx, s, m.Subject)
			if asking != nil {
				return asking
			}
			if is.number != after {
				return fmt.Errorf("it is at %d, not %d: %w", is.number, after, bus.ErrStale)
			}
			if err := b.shortPause(ctx); err != nil {
				return err
			}
		}
	})
	if err != nil && errors.Is(err, bus.ErrClosed) {
		return 0, bus.ErrClosed
	}
	return number, err
}

// drop ends a subscription. It fails only where the connection is closed, and the subscription with it.
func drop(sub *nats.Subscription) { _ = sub.Unsubscribe() }
