package frontier

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestNextStays: with KeepOpen, Next waits when there is nothing, hands out new items, and returns when KeepOpen is
// reset. While it waits nothing happens.
func TestNextStays(t *testing.T) {
	for name, open := range map[string]func() *Frontier{
		"in memory": func() *Frontier { return New(Config{}) },
		"on disk":   func() *Frontier { return onDisk(t) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := open()
				f.KeepOpen(true)
				visits, ends := make(chan *Visit), make(chan error)
				for range 3 {
					go func() {
						for {
							v, err := f.Next(t.Context())
							if err != nil {
								ends <- err
								return
							}
							visits <- v
						}
					}()
				}
				for i := range 3 {
					time.Sleep(100 * time.Hour)
					if dry, _ := f.IsDrained(); !dry {
						t.Error("it is not dry")
					}
					began := time.Now()
					f.Push("h", Item{URL: "http://h/"})
					_, moves := f.IsDrained()
					v := <-visits
					if wait := time.Since(began); wait > 0 {
						t.Errorf("visit %d came %v late", i, wait)
					}
					if dry, _ := f.IsDrained(); dry {
						t.Error("it is dry with a visit under way")
					}
					f.Done(v, Result{Outcome: Answered})
					if dry, now := f.IsDrained(); !dry || now == moves {
						t.Errorf("given back: dry %v, moves %d, %d", dry, moves, now)
					}
				}
				f.KeepOpen(false)
				for range 3 {
					if err := <-ends; !errors.Is(err, ErrDrained) {
						t.Error(err)
					}
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func onDisk(t *testing.T) *Frontier {
	t.Helper()
	f, _, err := Open(Config{Dir: t.TempDir(), Memory: 1})
	if err != nil {
		t.Fatal(err)
	}
	return f
}
