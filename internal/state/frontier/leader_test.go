package frontier

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// One caller polls at a time; it sleeps for as long as poll says, or until a signal.
func TestOneLeaderPollsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start, inside := newLeader(), time.Now(), 0
		done := make(chan time.Duration, 2)
		for range 2 {
			polls := 0
			go func() {
				err := l.run(t.Context(), func() (bool, time.Duration, error) {
					if inside++; inside > 1 {
						t.Error("two callers poll")
					}
					defer func() { inside-- }()
					polls++
					return polls == 3, time.Second, nil
				})
				if err != nil {
					t.Error(err)
				}
				done <- time.Since(start)
			}()
		}
		synctest.Wait()
		l.signal()
		if first, second := <-done, <-done; first != time.Second || second != 3*time.Second {
			t.Errorf("they were done after %v and %v", first, second)
		}
	})
}

func TestALeaderEndsWithItsContextOrAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		forever := func() (bool, time.Duration, error) { return false, time.Hour, nil }
		if err := l.run(ctx, forever); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		err := l.run(t.Context(), func() (bool, time.Duration, error) { return false, 0, ErrDrained })
		if !errors.Is(err, ErrDrained) {
			t.Error(err)
		}
	})
}
