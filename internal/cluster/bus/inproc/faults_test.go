package inproc_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/inproc"
	"kumo/internal/cluster/strategy"
)

// sent sends n messages under faults, in virtual time, and returns the received ones, in order.
func sent(t *testing.T, seed uint64, n int, faults inproc.Faults) (got []string) {
	synctest.Test(t, func(t *testing.T) {
		hub := inproc.New(seed)
		hub.SetFaults(faults)
		a, b := join(t, hub, "a~1"), join(t, hub, "b~1")
		go b.Receive(t.Context(), func(_ strategy.Node, data []byte) { got = append(got, string(data)) })
		for i := range n {
			if err := a.Send("b~1", fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour) // of virtual time: all delayed messages have arrived
		synctest.Wait()
		b.Close()
	})
	return got
}

func TestFaults(t *testing.T) {
	const n = 1000
	if got := sent(t, 1, n, inproc.Faults{}); len(got) != n || !inOrder(got) {
		t.Errorf("without faults %d of %d came, in order: %v", len(got), n, inOrder(got))
	}
	if got := sent(t, 1, n, inproc.Faults{Drop: 0.3}); len(got) < 600 || len(got) > 800 {
		t.Errorf("%d of %d came of which 3 of 10 should be lost", len(got), n)
	}
	if got := sent(t, 1, n, inproc.Faults{Duplicate: 0.3}); len(got) < 1200 || len(got) > 1400 {
		t.Errorf("%d came of %d of which 3 of 10 should come twice", len(got), n)
	}
	late := inproc.Faults{Delayed: 0.5, Delay: time.Minute}
	got := sent(t, 1, n, late)
	if len(got) != n || inOrder(got) {
		t.Errorf("%d of %d came, in order: %v", len(got), n, inOrder(got))
	}
	if again := sent(t, 1, n, inproc.Faults{Drop: 0.3}); fmt.Sprint(again) != fmt.Sprint(sent(t, 1, n,
		inproc.Faults{Drop: 0.3})) {
		t.Error("one seed has two outcomes")
	}
}

func inOrder(got []string) bool {
	for i := 1; i < len(got); i++ {
		if len(got[i]) < len(got[i-1]) || len(got[i]) == len(got[i-1]) && got[i] < got[i-1] {
			return false
		}
	}
	return true
}

func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := inproc.New(1)
		a, b := join(t, hub, "a~1"), join(t, hub, "b~1")
		var told, came []string
		go b.Watch(t.Context(), "", func(e bus.Entry) { told = append(told, string(e.Value)) })
		go b.Receive(t.Context(), func(_ strategy.Node, data []byte) { came = append(came, string(data)) })
		synctest.Wait()

		hub.Partition("b~1", true)
		rev := put(t, a, "one", 0)
		put(t, a, "two", rev)
		check(t, a.Send("b~1", []byte("lost")))
		check(t, b.Send("a~1", []byte("lost")))
		_, err := b.Put(t.Context(), "other", nil, 0)
		_, _, last := b.Last(t.Context(), "log")
		if !errors.Is(err, bus.ErrUnavailable) || !errors.Is(last, bus.ErrUnavailable) {
			t.Errorf("a node that is cut off: %v, %v", err, last)
		}
		synctest.Wait()
		if len(told) != 1 || len(came) != 0 {
			t.Errorf("a node that is cut off was told %q, and got %q", told, came)
		}
		hub.Partition("b~1", false)
		check(t, a.Send("b~1", []byte("there")))
		synctest.Wait()
		if fmt.Sprint(told) != "[ two]" || fmt.Sprint(came) != "[there]" {
			t.Errorf("when it is back it is told %q, and gets %q", told, came)
		}

		hub.DenyRegistry("b~1", true)
		if _, err := b.Get(t.Context(), "key"); !errors.Is(err, bus.ErrUnavailable) {
			t.Errorf("Get of a node that is denied: %v", err)
		}
		check(t, b.Send("b~1", []byte("still")))
		synctest.Wait()
		if fmt.Sprint(came) != "[there still]" {
			t.Errorf("a node that is denied the registry got %q", came)
		}
	})
}

func TestDoubt(t *testing.T) {
	hub := inproc.New(1)
	a := join(t, hub, "a~1")
	hub.SetFaults(inproc.Faults{Uncertain: 1})
	_, putting := a.Put(t.Context(), "key", []byte("x"), 0)
	_, appending := a.Append(t.Context(), "log", []byte("x"), 0)
	if !errors.Is(putting, bus.ErrUnavailable) || !errors.Is(appending, bus.ErrUnavailable) {
		t.Errorf("writes in doubt: %v, %v", putting, appending)
	}
	hub.SetFaults(inproc.Faults{})
	if e, err := a.Get(t.Context(), "key"); err != nil || string(e.Value) != "x" {
		t.Errorf("what was written in doubt is %v, %v", e, err)
	}
	if n, data, err := a.Last(t.Context(), "log"); err != nil || n == 0 || string(data) != "x" {
		t.Errorf("what was appended in doubt is %d %q, %v", n, data, err)
	}
}

func put(t *testing.T, b bus.Bus, value string, rev uint64) uint64 {
	t.Helper()
	rev, err := b.Put(t.Context(), "key", []byte(value), rev)
	check(t, err)
	return rev
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
