package node

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"kumo/internal/bus"
	"kumo/internal/member"
	"kumo/internal/strategy"
	"kumo/internal/vfs"
)

// ahead is a time whose wall clock is d ahead of its monotonic one, as after a machine was suspended for d. It relies
// on how package time lays a Time out: nanoseconds in the low 30 bits of its first word, seconds above them.
func ahead(t time.Time, d time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(d/time.Second) << 30
	return t
}

func TestALeaseHoldsByBothClocks(t *testing.T) {
	now := time.Now()
	until := now.Add(10 * time.Second)
	if a := ahead(now, time.Minute); a.Sub(now) != 0 || a.Round(0).Sub(now.Round(0)) != time.Minute {
		t.Fatal("package time lays a Time out otherwise")
	}
	for what, c := range map[string]struct {
		now  time.Time
		want bool
	}{
		"at once":                {now, true},
		"a little later":         {now.Add(9 * time.Second), true},
		"when it is over":        {now.Add(10 * time.Second), false},
		"suspended for a while":  {ahead(now, 5*time.Second), true},
		"suspended for too long": {ahead(now, 10*time.Second), false},
	} {
		if got := holds(until, c.now); got != c.want {
			t.Errorf("%s: it holds: %v", what, got)
		}
	}
}

func TestEnvelopes(t *testing.T) {
	msg := envelope("crawl", kindLinks, []byte("data"))
	if kind, data, err := open(msg, "crawl"); kind != kindLinks || string(data) != "data" || err != nil {
		t.Errorf("%q came back as %c %q %v", msg, kind, data, err)
	}
	for bad, why := range map[string]string{
		"":                                  "version 2",
		"\x01l\x05crawl":                    "version 2",
		string(msg[:5]):                     "ends early",
		"\x02l\xff\xff\xff\xff\xff\xff":     "ends early",
		string(envelope("other", 'l', nil)): `crawl "other"`,
	} {
		if _, _, err := open([]byte(bad), "crawl"); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want something of %s", bad, err, why)
		}
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(envelope("crawl", kindTaken, answerTo(7, []int{0, 3, 900})))
	f.Fuzz(func(_ *testing.T, msg []byte) {
		_, data, err := open(msg, "crawl")
		if err == nil {
			_, _, _ = readAnswer(data)
		}
	})
}

func TestAnswers(t *testing.T) {
	for _, refused := range [][]int{nil, {0}, {5}, {0, 1, 2}, {3, 300, 70_000}} {
		n, got, err := readAnswer(answerTo(1<<60, refused))
		if n != 1<<60 || !slices.Equal(got, refused) || err != nil {
			t.Errorf("%v came back as %v of %d (%v)", refused, got, n, err)
		}
	}
	for _, bad := range []string{"", "\xff", "\x01\xff", "\x01\xff\xff\xff\xff\x0f"} {
		if _, _, err := readAnswer([]byte(bad)); err == nil {
			t.Errorf("%q is an answer", bad)
		}
	}
}

func TestIdentities(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.json")
	id, err := OpenIdentity(vfs.OS, file, "one")
	if err != nil || id.Node().Name() != "one" || len(id.Node()) != len("one~01234567") {
		t.Fatal(id, err)
	}
	id.Joined = true
	if err := id.Save(vfs.OS, file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", ""} {
		if again, err := OpenIdentity(vfs.OS, file, name); again != id || err != nil {
			t.Errorf("%+v came back as %+v (%v)", id, again, err)
		}
	}
	if _, err := OpenIdentity(vfs.OS, file, "two"); err == nil {
		t.Error("one folder belongs to two nodes")
	}
	for _, bad := range []string{"", "a.b", "a b", "a/b"} {
		if _, err := OpenIdentity(vfs.OS, filepath.Join(t.TempDir(), "node.json"), bad); err == nil {
			t.Errorf("%q is a name", bad)
		}
	}
}

func TestLanes(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	tasks := newTasks(ctx)
	var got []int
	done := make(chan bool)
	for i := range 100 {
		tasks.inLane("one", func(context.Context) { got = append(got, i) })
	}
	tasks.inLane("one", func(context.Context) { close(done) })
	<-done
	if len(got) != 100 || !slices.IsSorted(got) {
		t.Errorf("done in the order %v", got)
	}
	release := make(chan bool)
	tasks.inLane("two", func(context.Context) { <-release })
	tasks.inLane("two", func(context.Context) { t.Error("begun when the node has ended") })
	stop()
	close(release)
	tasks.wait()
}

// A slowEngine takes chunks in, and is not done with them until it is let go on.
type slowEngine struct {
	Engine
	goOn chan struct{}
}

func (e slowEngine) Take(context.Context, member.Transfer, uint64, bool, []byte) (func(context.Context) error, error) {
	return func(context.Context) error { <-e.goOn; return nil }, nil
}

// However many send at once, only so much of it is in memory; the rest comes again.
func TestChunksAreLetGoWhileThereAreTooMany(t *testing.T) {
	e := slowEngine{goOn: make(chan struct{})}
	n := New(Config{Crawl: "c", Identity: Identity{Name: "a", Life: "1"}, Engine: e, Router: NewRouter()})
	n.tasks = newTasks(t.Context())
	chunk := envelope("c", kindMember, make([]byte, 1<<20))
	come := func(msg []byte) bool {
		before := len(n.events)
		n.message(t.Context(), "b~1", msg)
		return len(n.events) > before
	}
	for i := 0; come(chunk); i++ {
		if i > 100 {
			t.Fatal("all of it is taken")
		}
		n.executor.carryOut(member.Take{Transfer: member.Transfer{From: "b~1"}, Seq: uint64(i), Data: chunk})
	}
	if !come(envelope("c", kindMember, []byte("an answer"))) {
		t.Error("nothing comes any more")
	}
	close(e.goOn)
	for range n.executor.taking.Load() / int64(len(chunk)) {
		for {
			if _, taken := (<-n.events).(member.Taken); taken {
				break
			}
		}
	}
	n.tasks.wait()
	if !come(chunk) {
		t.Error("no chunk comes any more")
	}
}

func (e slowEngine) Outbox() (links int, bytes int64) { return 0, 0 }

// A node that leaves first takes in the seeds that were its task, or they would stay in an outbox that nobody has any
// more.
func TestWhoLeavesIsDoneWithSeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Config{Crawl: "c", Identity: Identity{Name: "a", Life: "1"}, Engine: slowEngine{}, Router: NewRouter()})
		n.tasks = newTasks(t.Context())
		n.record.busy.Add(1)
		n.executor.carryOut(member.Flush{Epoch: 3})
		time.Sleep(time.Minute)
		if len(n.events) > 0 {
			t.Error("it leaves with seeds that nobody has")
		}
		n.record.busy.Add(-1)
		if e := <-n.events; e != (member.Flushed{Epoch: 3}) {
			t.Errorf("%T", e)
		}
		n.tasks.wait()
	})
}

// A busyEngine has requests under way to some hosts.
type busyEngine struct {
	Engine
	to map[string]<-chan struct{}
}

func (e busyEngine) Busy([]string) map[string]<-chan struct{} { return e.to }

// A host moves when the request to it has ended; others do not wait for it.
func TestABusyHostIsHandedOverLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		n := New(Config{Crawl: "c", Identity: Identity{Name: "a", Life: "1"}, Router: NewRouter(),
			Engine: busyEngine{to: map[string]<-chan struct{}{"slow": over}}})
		n.tasks = newTasks(t.Context())
		m := &strategyDriver{n: n}
		m.carryOut(strategy.HandOver{Hosts: []string{"one", "slow", "two"}, To: "b~1"})
		if e := (<-n.events).(member.HandOver); !slices.Equal(e.Hosts, []string{"one", "two"}) || e.To != "b~1" {
			t.Errorf("%v move at once", e)
		}
		synctest.Wait()
		if len(n.events) > 0 {
			t.Error("a host moves to which a request is under way")
		}
		close(over)
		if e := (<-n.events).(member.HandOver); !slices.Equal(e.Hosts, []string{"slow"}) {
			t.Errorf("%v move in the end", e)
		}
		n.tasks.wait()
	})
}

func TestClocksAreCompared(t *testing.T) {
	now := time.Unix(1e9, 0)
	lease := func(n string, clock time.Time) bus.Entry {
		report, err := json.Marshal(Report{Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		l := member.Lease{Instance: 1, Report: report}
		return bus.Entry{Key: member.LeasePrefix + n, Value: l.Encode(), Revision: 1}
	}
	var c clocks
	for i, step := range []struct {
		e     bus.Entry
		want  time.Duration
		apart bool
	}{
		{lease("a", now.Add(-time.Hour)), 0, false}, // it may be an hour old
		{lease("a", now.Add(time.Second)), time.Second, false},
		{lease("a", now.Add(time.Hour)), 0, false}, // it was compared
		{lease("b", now), 0, false},
		{lease("b", now.Add(-time.Minute)), -time.Minute, true},
		{lease("b", now.Add(-time.Minute)), 0, false}, // it was told
		{bus.Entry{Key: "table"}, 0, false},
	} {
		if _, ahead, apart := c.renewed(step.e, now); apart != step.apart || ahead != step.want {
			t.Errorf("step %d: %v ahead, apart %v; want %v, %v", i, ahead, apart, step.want, step.apart)
		}
	}
}
