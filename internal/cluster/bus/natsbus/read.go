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

// Headers of stored messages and of servers' answers.
const (
	headExpected = "Nats-Expected-Last-Subject-Sequence"
	headDeleted  = "Kumo-Deleted"
	headSubject  = "Nats-Subject"
	headNumber   = "Nats-Sequence"
	headPrevious = "Nats-Last-Sequence" // in an answer: number of the message before this one; 0 before the first
	headPending  = "Nats-Num-Pending"   // in an answer: number of messages after this one
)

// A query requests stored messages from any of a stream's servers.
type query struct {
	From     uint64   `json:"seq,omitempty"`
	Next     string   `json:"next_by_subj,omitempty"` // all messages of this subject, from From on
	Last     []string `json:"multi_last,omitempty"`   // or the last messages of these
	Batch    int      `json:"batch,omitempty"`
	MaxBytes int      `json:"max_bytes,omitempty"`
}

// stored is a message in a stream.
type stored struct {
	subject string
	number  uint64
	header  nats.Header
	data    []byte
}

// errIncomplete is returned for an incomplete answer.
var errIncomplete = errors.New("part of the answer was lost")

// answerQueue is the number of messages of an answer that can wait to be read: more than the largest query.Batch. With
// the default, 65,536, each request allocates half a megabyte, and a slow node spends half its time collecting garbage.
const answerQueue = 2048

// request calls f with one server's answer to a query, in the order of numbers, and reports whether the server has more
// than fits into the answer. The answer lacks messages that the server does not have yet. If a part was lost on the way,
// as when the connection was interrupted, it returns errIncomplete.
func (c *Cluster) request(ctx context.Context, s stream, q query, f func(stored) error) (more bool, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return false, err
	}
	// the inbox of conn.Request would receive each answer twice
	inbox := c.conn.NewInbox()
	sub, err := c.conn.SubscribeSync(inbox)
	if err != nil {
		return false, err
	}
	defer drop(sub)
	if err := c.conn.PublishRequest("$JS.API.DIRECT.GET."+s.name, inbox, body); err != nil {
		return false, err
	}
	for last := uint64(0); ; {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return false, err
		}
		if previous := m.Header.Get(headPrevious); previous != "" && previous != strconv.FormatUint(last, 10) {
			return false, errIncomplete
		}
		switch status := m.Header.Get("Status"); status {
		case "":
		case "204": // the end
			return m.Header.Get(headPending) != "0", nil
		case "404": // no messages; after a message: the next one cannot be read any more
			if last > 0 {
				return false, errIncomplete
			}
			return false, nil
		case "503":
			return false, nats.ErrNoResponders
		default:
			return false, fmt.Errorf("server error %s %s", status, m.Header.Get("Description"))
		}
		number, err := strconv.ParseUint(m.Header.Get(headNumber), 10, 64)
		if err != nil {
			return false, fmt.Errorf("stored message without a number: %w", err)
		}
		if err := f(stored{m.Header.Get(headSubject), number, m.Header, m.Data}); err != nil {
			return false, err
		}
		last = number
	}
}

// mark writes a marker through the majority, and returns its number. A server that has the marker has everything that
// was acknowledged before.
func (c *Cluster) mark(ctx context.Context, s stream) (uint64, error) {
	// only the last marker is stored
	m := &nats.Msg{Subject: s.mark, Header: nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}}}
	ack, err := c.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// latest returns the last message of a subject that a majority has; its number is 0 if there is none.
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
			_, err := c.request(ctx, s, query{Last: []string{s.mark, subject}, Batch: 2}, func(m stored) error {
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
			if err := b.shortPause(ctx); err != nil { // the server lags behind
				return err
			}
		}
	})
	return got, err
}

// shortPause waits briefly, for a server to catch up.
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

// write stores a message if the last one of its subject has the number after. It verifies a refusal: servers also
// refuse while another write is in progress, which may fail.
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
				return fmt.Errorf("the last number is %d, not %d: %w", is.number, after, bus.ErrStale)
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

// drop ends a subscription. It fails only if the connection is closed, which has ended the subscription, too.
func drop(sub *nats.Subscription) { _ = sub.Unsubscribe() }
