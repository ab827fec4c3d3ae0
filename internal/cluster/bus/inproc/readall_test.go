package inproc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/cluster/bus"
)

// TestReadAll reads the values with a prefix, and checks the error if that is not possible.
func TestReadAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := New(1)
		b, err := hub.Join("a~1")
		if err != nil {
			t.Fatal(err)
		}
		var rev uint64
		for _, key := range []string{"x/1", "x/2", "y/1"} {
			if rev, err = b.Put(t.Context(), key, []byte(key), 0); err != nil {
				t.Fatal(err)
			}
			if key == "x/2" {
				if err := b.Delete(t.Context(), key, rev); err != nil {
					t.Fatal(err)
				}
			}
		}
		if all, err := bus.ReadAll(t.Context(), b, "x/"); err != nil || len(all) != 1 || string(all[0].Value) != "x/1" {
			t.Errorf("%+v, %v", all, err)
		}
		hub.Partition("a~1", true)
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := bus.ReadAll(late, b, "x/"); !errors.Is(err, bus.ErrUnavailable) {
			t.Errorf("cut off: %v", err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := bus.ReadAll(ended, b, "x/"); !errors.Is(err, context.Canceled) {
			t.Errorf("not wanted any more: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := bus.ReadAll(t.Context(), b, "x/"); !errors.Is(err, bus.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}
