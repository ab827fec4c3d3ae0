package crawl

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/state/frontier"
)

// A long queue is removed. While it is read, from a disk that stalls, other goroutines commit and read counts.
func TestALongQueueIsForgottenWhileOthersCommit(t *testing.T) {
	var stalls atomic.Bool
	reached, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	disk := vfstest.NewSlow(vfs.OS, func(call string) {
		if call == "read" && stalls.Load() {
			once.Do(func() { close(reached) })
			<-goOn
		}
	})
	h := &haul{t: t, disk: disk, memory: 1 << 20}
	e := h.open(nobodys{})
	long(e, 20_000)
	stalls.Store(true)
	forgot := make(chan error, 1)
	go func() { forgot <- e.Transfers().ForgetHosts(t.Context(), func(string, uint64) bool { return true }) }()
	<-reached
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		e.Idle()
		e.frontier.Counts()
		done <- e.ledger.FlushDurable(soon)
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("a commit: %v", err)
		}
	case <-soon.Done():
		t.Error("others wait for the disk")
	}
	close(goOn)
	if err := <-forgot; err != nil {
		t.Error(err)
	}
	if c := e.frontier.Counts(); c.URLs != 0 {
		t.Errorf("%+v are left", c)
	}
}

// long queues many URLs of one host.
func long(e *Engine, n int) {
	for i := range n {
		url := fmt.Sprint("https://long.test/articles/2026/a-title-in-words/", i)
		e.frontier.Push("long.test", frontier.Item{URL: url, Depth: 1})
		e.frontier.WaitForRoom(context.Background())
	}
}

// TestHowLongForgettingHoldsOthersUp removes a host with very many URLs, and prints the longest time that others waited
// for counts and for a commit; KUMO_TEST_READ is the duration of a disk read.
//
//	KUMO_TEST_SCALE=2000000 KUMO_TEST_READ=0s go test ./internal/engine/crawl -run HowLongForgetting -v
//	KUMO_TEST_SCALE=1000000 KUMO_TEST_READ=1ms go test ./internal/engine/crawl -run HowLongForgetting -v
func TestHowLongForgettingHoldsOthersUp(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("KUMO_TEST_SCALE"))
	if n < 2 {
		t.Skip("for KUMO_TEST_SCALE")
	}
	wait, _ := time.ParseDuration(os.Getenv("KUMO_TEST_READ"))
	var slow atomic.Bool
	var reads atomic.Int64
	disk := vfstest.NewSlow(vfs.OS, func(call string) {
		if call == "read" && slow.Load() {
			reads.Add(1)
			time.Sleep(wait)
		}
	})
	h := &haul{t: t, disk: disk}
	e := h.open(nobodys{})
	long(e, n)
	slow.Store(true)
	over := make(chan struct{})
	var longest [2]time.Duration
	var watching sync.WaitGroup
	counts := func() { e.frontier.Counts(); e.Idle() }
	commit := func() { _ = e.ledger.Within(func() error { return nil }) }
	for i, ask := range []func(){counts, commit} {
		watching.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				began := time.Now()
				ask()
				longest[i] = max(longest[i], time.Since(began))
				time.Sleep(time.Millisecond)
			}
		})
	}
	began := time.Now()
	if err := e.Transfers().ForgetHosts(t.Context(), func(string, uint64) bool { return true }); err != nil {
		t.Error(err)
	}
	took := time.Since(began)
	close(over)
	watching.Wait()
	t.Logf("%d URLs forgotten in %v with %d reads; counts took %v at the most, a commit's gate %v",
		n, took, reads.Load(), longest[0], longest[1])
}
