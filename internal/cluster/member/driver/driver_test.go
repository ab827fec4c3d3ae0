package driver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// A testRuntime runs functions as goroutines. Methods that are missing here are not called.
type testRuntime struct {
	Runtime
	ctx  context.Context
	all  sync.WaitGroup
	loop sync.Mutex
	told chan member.Event // events for the member
	sent []idleReport      // to b~1
	d    *Driver
}

func newTestRuntime(t *testing.T, e Engine, r Record) *testRuntime {
	w := &testRuntime{ctx: t.Context(), told: make(chan member.Event, 1000)}
	all := strategy.Members{Epoch: 3, Settled: 3, Members: []strategy.Member{{Node: "a~1"}, {Node: "b~1"}}}
	w.d = New(Config{Self: "a~1", Timing: member.LAN(), Member: still{all: all}, Runtime: w, Engine: e,
		Record: r, Log: slog.New(slog.DiscardHandler)})
	w.d.Start(t.Context())
	return w
}

// still is a member that does nothing.
type still struct {
	member.Member
	all strategy.Members
}

func (still) Start(out []member.Action) []member.Action { return out }
func (s still) Members() strategy.Members               { return s.all }

func (w *testRuntime) Now() time.Time { return time.Now() }

func (w *testRuntime) Send(_ strategy.Node, _ Kind, data []byte) {
	var r idleReport
	if json.Unmarshal(data, &r) == nil {
		w.sent = append(w.sent, r)
	}
}

func (w *testRuntime) Go(f func(context.Context)) { w.all.Go(func() { f(w.ctx) }) }

func (w *testRuntime) Pause(_ context.Context, d time.Duration) bool { time.Sleep(d); return true }

func (w *testRuntime) Call(_ context.Context, f func()) {
	w.loop.Lock()
	defer w.loop.Unlock()
	f()
	for _, e := range w.d.events {
		w.told <- e
	}
	w.d.events = nil
}

func TestLanes(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	w := &testRuntime{ctx: ctx}
	l := lanes{runtime: w}
	var got []int
	done := make(chan bool)
	for i := range 100 {
		l.put("one", func(context.Context) { got = append(got, i) })
	}
	l.put("one", func(context.Context) { close(done) })
	<-done
	if len(got) != 100 || !slices.IsSorted(got) {
		t.Errorf("done in the order %v", got)
	}
	release := make(chan bool)
	l.put("two", func(context.Context) { <-release })
	l.put("two", func(context.Context) { t.Error("begun when the node has ended") })
	stop()
	close(release)
	w.all.Wait()
}

// A slowEngine imports chunks, and completes them only when it is released.
type slowEngine struct {
	Engine
	goOn chan struct{}
}

func (e slowEngine) Import(context.Context, member.Transfer, uint64, bool, []byte) (func(context.Context) error, error) {
	return func(context.Context) error { <-e.goOn; return nil }, nil
}

func (e slowEngine) Outbox() (links int, bytes int64) { return 0, 0 }

// However many nodes send at once, only some chunks are in memory; the others are sent again.
func TestChunksAreLetGoWhileThereAreTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := slowEngine{goOn: make(chan struct{})}
		w := newTestRuntime(t, e, nil)
		come := func(msg []byte) bool {
			before := len(w.told)
			w.d.Message(t.Context(), "b~1", KindMember, msg)
			return len(w.told) > before
		}
		chunk := make([]byte, 1<<20)
		for i := 0; come(chunk); i++ {
			if i > 100 {
				t.Fatal("all of it is taken")
			}
			w.d.execute(member.Import{Transfer: member.Transfer{From: "b~1"}, Seq: uint64(i), Data: chunk})
			synctest.Wait()
		}
		if !come([]byte("an answer")) {
			t.Error("nothing comes any more")
		}
		for w.d.transfers.importing.Load() > 0 { // one after the other
			e.goOn <- struct{}{}
			synctest.Wait()
		}
		if w.all.Wait(); !come(chunk) {
			t.Error("no chunk comes any more")
		}
	})
}

// A testRecord is admitting seeds, or not.
type testRecord struct {
	Record
	admitting atomic.Bool
	finished  atomic.Uint64 // at this revision
}

func (r *testRecord) Admitting() bool { return r.admitting.Load() }

// A node that leaves first admits the seeds that were its task. Otherwise they would stay in an outbox that no node
// reads.
func TestWhoLeavesIsDoneWithSeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(testRecord)
		r.admitting.Store(true)
		w := newTestRuntime(t, slowEngine{}, r)
		w.d.execute(member.Flush{Epoch: 3})
		time.Sleep(time.Minute + time.Millisecond)
		if len(w.told) > 0 {
			t.Error("it leaves with seeds that nobody has")
		}
		r.admitting.Store(false)
		if e := <-w.told; e != (member.Flushed{Epoch: 3}) {
			t.Errorf("%T", e)
		}
		w.all.Wait()
	})
}

// A busyEngine has requests in flight to some hosts.
type busyEngine struct {
	Engine
	to map[string]func(context.Context) error
}

func (e busyEngine) Busy([]string) map[string]func(context.Context) error { return e.to }

// A host moves when the request to it has ended; other hosts do not wait for it.
func TestABusyHostIsHandedOverLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		wait := func(context.Context) error { <-over; return nil }
		w := newTestRuntime(t, busyEngine{to: map[string]func(context.Context) error{"slow": wait}}, nil)
		w.d.executeStrategy(strategy.HandOver{Hosts: []string{"one", "slow", "two"}, To: "b~1"})
		if e := (<-w.told).(member.HandOver); !slices.Equal(e.Hosts, []string{"one", "two"}) || e.To != "b~1" {
			t.Errorf("%v move at once", e)
		}
		synctest.Wait()
		if len(w.told) > 0 {
			t.Error("a host moves to which a request is under way")
		}
		close(over)
		if e := (<-w.told).(member.HandOver); !slices.Equal(e.Hosts, []string{"slow"}) {
			t.Errorf("%v move in the end", e)
		}
		w.all.Wait()
	})
}

// An idleEngine has nothing to do.
type idleEngine struct{ Engine }

func (idleEngine) Idle() bool      { return true }
func (idleEngine) Received() int64 { return 7 }

func (r *testRecord) Seeded() (uint64, bool) { return 11, true }
func (r *testRecord) Idle() bool             { return true }
func (r *testRecord) Received() int64        { return 0 }

func (r *testRecord) Finish(revision uint64) func(context.Context) {
	return func(context.Context) { r.finished.Store(revision) }
}

// The crawl is done when all nodes were idle, were still idle when queried again, and had received nothing in between.
func TestTheEndIsAskedForTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(testRecord)
		w := newTestRuntime(t, idleEngine{}, r)
		answer := func(came int64, idle bool, process uint64) {
			t.Helper()
			w.d.DetectEnd()
			wave := w.sent[len(w.sent)-1].Wave
			data, err := json.Marshal(idleReport{Wave: wave, Epoch: 3, Process: process, Activity: came, Idle: idle})
			if err != nil {
				t.Fatal(err)
			}
			w.d.Message(t.Context(), "b~1", KindIdleReport, data)
			synctest.Wait()
			if !idle {
				w.d.DetectEnd()
				if last := w.sent[len(w.sent)-1].Wave; last != wave {
					t.Error("who is not idle is asked again at once")
				}
				time.Sleep(w.d.cfg.Timing.Beat / 2)
			}
		}
		for i, a := range []struct {
			came    int64
			idle    bool
			process uint64
		}{
			{5, true, 1}, {6, true, 1}, // something was received in between
			{6, true, 1}, {6, false, 1},
			{6, false, 1},
			{6, true, 1}, {6, true, 2}, // the process has restarted: its earlier count is unknown
			{6, true, 1<<64 - 1},
		} {
			if answer(a.came, a.idle, a.process); r.finished.Load() > 0 {
				t.Fatalf("after answer %d of the other node the crawl is done", i)
			}
		}
		if answer(6, true, 1<<64-1); r.finished.Load() != 11 || len(w.sent) != 9 {
			t.Errorf("both are idle, and it is done at revision %d, with %d questions", r.finished.Load(), len(w.sent))
		}
		w.all.Wait()
	})
}

// A node that was not idle reports, once, when it is, and is then queried again.
func TestANodeSaysWhenItHasTurnedIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var engine turningEngine
		w := newTestRuntime(t, &engine, new(testRecord))
		for range 2 {
			w.d.Message(t.Context(), "b~1", KindIdleQuery, []byte(`{"wave":3}`))
			w.d.DetectEnd()
		}
		if len(w.sent) != 2 || w.sent[0].Idle || w.sent[1].BecameIdle {
			t.Fatalf("of a node that is not idle is said %+v", w.sent)
		}
		engine.idle = true
		for range 2 {
			w.d.DetectEnd()
		}
		turned := slices.DeleteFunc(w.sent, func(r idleReport) bool { return !r.BecameIdle })
		if len(turned) != 1 || turned[0].Wave != 3 || !turned[0].Idle {
			t.Fatalf("of one that is idle by now is said %+v", turned)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newTestRuntime(t, idleEngine{}, new(testRecord))
		w.d.DetectEnd()
		w.d.Message(t.Context(), "b~1", KindIdleReport, []byte(`{"wave":1,"epoch":3}`))
		synctest.Wait()
		if w.d.DetectEnd(); len(w.sent) != 1 {
			t.Fatal("who is not idle is asked again at once")
		}
		w.d.Message(t.Context(), "b~1", KindIdleReport, []byte(`{"wave":1,"epoch":3,"idle":true,"turned":true}`))
		synctest.Wait()
		if w.d.DetectEnd(); len(w.sent) != 2 || w.sent[1].Wave != 3 {
			t.Errorf("when it is idle it is asked %+v", w.sent[1:])
		}
		w.all.Wait()
	})
}

// A turningEngine is idle when the test sets it.
type turningEngine struct {
	Engine
	idle bool
}

func (e *turningEngine) Idle() bool      { return e.idle }
func (e *turningEngine) Received() int64 { return 7 }

// Each process answers with its own number, the same each time.
func TestAnswersNameTheProcess(t *testing.T) {
	var numbers []uint64
	for _, seed := range []uint64{1, 2} {
		w := newTestRuntime(t, idleEngine{}, new(testRecord))
		w.d.cfg.Seed = seed
		for range 2 {
			w.d.Message(t.Context(), "b~1", KindIdleQuery, []byte(`{"wave":1}`))
		}
		if len(w.sent) != 2 || w.sent[0] != w.sent[1] || !w.sent[0].Idle {
			t.Fatalf("the answers are %+v", w.sent)
		}
		numbers = append(numbers, w.sent[0].Process)
	}
	if numbers[0] == numbers[1] {
		t.Errorf("two processes answer with the number %d", numbers[0])
	}
}

// stubborn are dead nodes whose logs cannot be read at first.
type stubborn struct {
	FailedNodes
	mu       sync.Mutex // guards the fields below
	failures int
	tried    []strategy.Node
}

func (f *stubborn) DeleteLog(_ context.Context, dead strategy.Node) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tried = append(f.tried, dead)
	if f.failures--; f.failures >= 0 {
		return errors.New("no route to its place")
	}
	return nil
}

func (f *stubborn) times() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.tried)
}

// settlingEngine receives finalized epochs.
type settlingEngine struct {
	Engine
	settled []uint64
}

func (e *settlingEngine) FinalizeEpoch(_ context.Context, epoch uint64) error {
	e.settled = append(e.settled, epoch)
	return nil
}

// A dead node's log is deleted eventually, and a later finalized epoch does not wait for that.
func TestWhatADeadNodeHasLeftIsRemovedInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := &stubborn{failures: 4}, &settlingEngine{}
		w := newTestRuntime(t, e, nil)
		w.d.cfg.Failed, w.d.transfers.recovered = f, []strategy.Node{"c~1"}
		w.d.transfers.finalizeEpoch(3)
		synctest.Wait()
		w.d.transfers.finalizeEpoch(4)
		synctest.Wait()
		if n := f.times(); n != 1 || !slices.Equal(e.settled, []uint64{3, 4}) {
			t.Errorf("tried %d times, settled %v", n, e.settled)
		}
		w.all.Wait()
		if n := f.times(); n != 5 {
			t.Errorf("tried %d times", n)
		}
	})
}
