package wait

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, why := time.Now(), errors.New("enough")
		if err := For(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if err := For(ctx, time.Minute); !errors.Is(err, why) {
			t.Errorf("%v", err)
		}
	})
}

func TestTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 35*time.Second)
		defer cancel()
		began := time.Now()
		var at []time.Duration
		for now := range Ticks(ctx, 10*time.Second) {
			at = append(at, now.Sub(began))
		}
		if len(at) != 4 || at[0] != 0 || at[3] != 30*time.Second {
			t.Errorf("%v", at)
		}
		for range Every(t.Context(), time.Second) {
			break
		}
		if took := time.Since(began); took != 36*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestWake(t *testing.T) {
	c := make(chan struct{}, 1)
	Wake(c)
	Wake(c) // one is there
	<-c
	if len(c) > 0 {
		t.Error("there are two words")
	}
}
