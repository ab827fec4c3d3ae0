package natsbus

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// slowEnd is a context that reports its end after its deadline, like one whose timer is late.
type slowEnd struct {
	context.Context
	deadline time.Time
}

func (c slowEnd) Deadline() (time.Time, bool) { return c.deadline, true }

// TestRetryReportsTheErrorBeforeTheDeadline: an attempt that the deadline ends says nothing about the servers.
func TestRetryReportsTheErrorBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused, late := errors.New("refused"), errors.New("no answer in time")
		base, cancel := context.WithCancel(t.Context())
		defer cancel()
		ctx := slowEnd{base, time.Now().Add(10 * time.Second)}
		c := &Cluster{}
		err := c.retry(ctx, func() error {
			if time.Until(ctx.deadline) > 3*time.Second {
				return refused
			}
			time.Sleep(time.Until(ctx.deadline)) // as a connection with this deadline does
			time.AfterFunc(time.Millisecond, cancel)
			return late
		})
		if !errors.Is(err, refused) || errors.Is(err, late) {
			t.Errorf("%v", err)
		}
	})
}
