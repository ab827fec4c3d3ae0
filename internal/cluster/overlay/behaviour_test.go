package overlay_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/overlay/overlaytest"
	"kumo/internal/lab/testmain"
)

// quiet returns a network of n nodes that know each other.
func quiet(t *testing.T, n int) *overlaytest.World {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := overlaytest.New(seed)
	joinAll(w, n, 100*time.Millisecond)
	w.Run(time.Minute)
	return w
}

// knowing returns the nodes whose tables contain a node.
func knowing(w *overlaytest.World, name string) (all []*overlaytest.Node) {
	for _, n := range w.Live() {
		if n.Table[name] {
			all = append(all, n)
		}
	}
	return all
}

// neighbours returns the nodes that have a node as a neighbor.
func neighbours(w *overlaytest.World, name string) (all []*overlaytest.Node) {
	for _, n := range w.Live() {
		if slices.Contains(names(n.Neighbors(nil)), name) {
			all = append(all, n)
		}
	}
	return all
}

func TestTheDeadAreNoticedInTime(t *testing.T) {
	testmain.Slow(t)
	for _, notice := range []time.Duration{0, 6 * time.Second, 20 * time.Second} {
		t.Run(notice.String(), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			w := overlaytest.New(seed)
			w.Config.Notice = notice
			joinAll(w, 100, 100*time.Millisecond)
			w.Run(time.Minute)
			if notice == 0 {
				notice = 10 * time.Second
			}
			var longest time.Duration
			for range 10 {
				dead := w.RandomNode()
				watching := neighbours(w, dead.Name)
				if len(watching) < 3 { // the number depends on the ids
					t.Errorf("%d nodes watch it", len(watching))
				}
				w.Crash(dead)
				crashed := w.Now()
				known := func(n *overlaytest.Node) bool { return n.Table[dead.Name] }
				for w.Now() < crashed+2*notice && slices.ContainsFunc(watching, known) {
					w.Run(100 * time.Millisecond)
				}
				longest = max(longest, w.Now()-crashed)
				w.Run(10 * time.Second)
			}
			t.Logf("after %v at most", longest)
			if longest > notice {
				t.Errorf("a dead neighbour passed for alive for %v", longest)
			}
		})
	}
}

func TestNewcomersAreKnownSoon(t *testing.T) {
	w := quiet(t, 300)
	w.Config.Seed = 1
	var longest time.Duration
	for range 20 {
		name := w.Names(1)[0]
		n := w.Start(name, w.RandomNode().Name)
		started := w.Now()
		right := func() bool {
			for _, near := range w.Closest(n.ID, 8)[1:] { // the nodes nearest to it, for which it is among the nearest
				other := w.ByID(w.IDOf(near))
				if !slices.Contains(names(n.Neighbors(nil)), near) || !slices.Contains(names(other.Neighbors(nil)), name) &&
					slices.Contains(w.Closest(other.ID, 17), name) {
					return false
				}
			}
			c, exact := n.Closest(n.ID, 1, nil)
			return exact && c[0].Node == name
		}
		for w.Now() < started+time.Minute && !right() {
			w.Run(100 * time.Millisecond)
		}
		longest = max(longest, w.Now()-started)
	}
	t.Logf("after %v at most", longest)
	if longest > 10*time.Second {
		t.Errorf("a newcomer was not known for %v", longest)
	}
}

func TestWhoLeavesIsGoneAtOnce(t *testing.T) {
	w := quiet(t, 60)
	n := w.RandomNode()
	contacts := n.Table
	w.Leave(n)
	w.Run(time.Second)
	for _, other := range knowing(w, n.Name) {
		if contacts[other.Name] {
			t.Errorf("%s still has a contact that has left", other.Name)
		}
	}
	w.Run(20 * time.Second) // no report of others brings it back
	if left := len(neighbours(w, n.Name)); left > 0 {
		t.Errorf("it is a neighbour of %d", left)
	}
}

func TestALostConnectionIsLookedInto(t *testing.T) {
	w := quiet(t, 40)
	n := w.RandomNode()
	dead := w.ByID(overlay.IDOf(names(n.Neighbors(nil))[0]))
	n.Handle(overlay.Lost{Node: dead.Name}) // it is alive
	w.Run(5 * time.Second)
	if !n.Table[dead.Name] {
		t.Error("a contact that lives is gone because one connection was")
	}
	w.Crash(dead)
	for range 10 { // the transport repeats it
		n.Handle(overlay.Lost{Node: dead.Name})
		w.Run(10 * time.Millisecond)
	}
	if n.Table[dead.Name] {
		t.Error("a dead contact to which there is no connection is waited for")
	}
	n.Handle(overlay.Lost{Node: "nobody"}, overlay.Lost{Node: n.Name})
}

func TestNoMessageIsNeededWhereTheAnswerIsKnown(t *testing.T) {
	w := quiet(t, 100)
	n := w.RandomNode()
	n.Handle() // finish work that is due now
	w.Reset()
	n.Handle(overlay.Find{ID: n.ID, Tag: 3, Want: 3})
	f, done := n.Found[3]
	if !done || !f.Exact || w.Messages > 0 || !slices.Equal(names(f.Closest), w.Closest(n.ID, 3)) {
		t.Errorf("done %v with %d messages: %+v", done, w.Messages, f)
	}
}

func TestLookUpsHaveABound(t *testing.T) {
	w := quiet(t, 200)
	n := w.RandomNode()
	for i := range 1000 {
		n.Handle(overlay.Find{ID: xor.Of(fmt.Sprint(i)), Tag: uint64(i), Want: 3})
	}
	if n.LookUps() > 32 {
		t.Errorf("%d under way", n.LookUps())
	}
	w.Run(10 * time.Second)
	if len(n.Found) != 1000 || n.LookUps() != 0 {
		t.Errorf("%d of 1000 were answered", len(n.Found))
	}
	id := n.ID // a leaving node is not the closest to its own id any more
	n.Handle(overlay.Leave{}, overlay.Find{ID: id, Tag: 2000, Want: 3},
		overlay.Find{ID: xor.Of("late"), Tag: 2001, Want: 3})
	w.Run(10 * time.Second)
	for tag := uint64(2000); tag < 2002; tag++ {
		f, done := n.Found[tag]
		if !done || len(f.Closest) != 3 || slices.Contains(names(f.Closest), n.Name) {
			t.Errorf("who leaves has found %+v", f)
		}
	}
}

func TestANodeWithoutOthers(t *testing.T) {
	w := overlaytest.New(1)
	first := w.Start("first")
	if c, exact := first.Closest(xor.Of("x"), 3, nil); !exact || !slices.Equal(names(c), []string{"first"}) {
		t.Errorf("the first node does not know that it is alone: %v %v", names(c), exact)
	}
	w.Crash(first)
	second := w.Start("second", "first")
	w.Run(time.Minute)
	if _, exact := second.Closest(xor.Of("x"), 3, nil); exact {
		t.Error("who has reached nobody says that it knows all")
	}
	w.Reset()
	w.Run(time.Hour)
	if rate := float64(w.Messages) / 3600; rate > 0.5 {
		t.Errorf("who reaches nobody sends %.1f messages a second", rate)
	}
	w.Start("first")
	w.Run(2 * time.Minute)
	if c, exact := second.Closest(second.ID, 3, nil); !exact || len(c) != 2 {
		t.Errorf("a node by which one wanted to join has come, and is not found: %v %v", names(c), exact)
	}
}

func TestPartsOfANetworkFindEachOtherAgain(t *testing.T) {
	w := quiet(t, 80)
	side := map[string]bool{}
	for i, n := range w.Live() {
		side[n.Name] = i%3 == 0
	}
	w.Partition(func(a, b string) bool { return side[a] != side[b] })
	w.Run(10 * time.Minute)
	for _, n := range w.Live() {
		for _, c := range names(n.Neighbors(nil)) {
			if side[c] != side[n.Name] {
				t.Fatalf("%s has a neighbour of the other side", n.Name)
			}
		}
	}
	w.Partition(nil)
	healed := w.Now()
	wrong := func() (n int) {
		for _, node := range w.Live() {
			if !slices.Equal(names(node.Neighbors(nil)), w.Closest(node.ID, 17)[1:]) {
				n++
			}
		}
		return n
	}
	for w.Now() < healed+10*time.Minute && wrong() > 0 {
		w.Run(5 * time.Second)
	}
	t.Logf("after %v", w.Now()-healed)
	if n := wrong(); n > 0 || w.Now()-healed > 5*time.Minute {
		t.Errorf("%d nodes have not found their neighbours after %v", n, w.Now()-healed)
	}
}

func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	run := func() (int, int, []string) {
		w := overlaytest.New(42)
		w.Loss = 0.05
		joinAll(w, 50, 100*time.Millisecond)
		w.Run(2 * time.Minute)
		return w.Messages, w.Bytes, names(w.Live()[0].Neighbors(nil))
	}
	m1, b1, n1 := run()
	m2, b2, n2 := run()
	if m1 != m2 || b1 != b2 || !slices.Equal(n1, n2) {
		t.Errorf("%d and %d messages, %d and %d bytes", m1, m2, b1, b2)
	}
}

// TestAnswersMayComeLate has one node so far from all others that answers in both directions arrive after their queries
// have failed.
func TestAnswersMayComeLate(t *testing.T) {
	w := quiet(t, 40)
	w.Delay = func(from, to string) time.Duration {
		if from == "far away" || to == "far away" {
			return 700 * time.Millisecond
		}
		return 50 * time.Millisecond
	}
	far := w.Start("far away", w.RandomNode().Name)
	w.Run(3 * time.Minute)
	if c, exact := far.Closest(far.ID, 1, nil); !exact || c[0].Node != far.Name {
		t.Errorf("it has not found its place: %v", names(c))
	}
	for _, near := range w.Closest(far.ID, 4)[1:] {
		if !w.ByID(w.IDOf(near)).Table[far.Name] {
			t.Errorf("%s does not know it", near)
		}
	}
	w.Reset()
	w.Run(time.Minute)
	if m := rate(w, w.Messages, time.Minute); m > 8 {
		t.Errorf("%.1f messages/s a node", m)
	}
}

// TestWhoOnlyAsksDoesNotLive: a node that receives nothing, but still sends queries, counts as dead.
func TestWhoOnlyAsksDoesNotLive(t *testing.T) {
	w := quiet(t, 30)
	deaf := w.RandomNode()
	w.Partition(func(_, to string) bool { return to == deaf.Name })
	w.Run(time.Minute)
	if n := len(neighbours(w, deaf.Name)); n > 0 {
		t.Errorf("it is a neighbour of %d", n)
	}
	w.Run(15 * time.Minute)
	if n := len(knowing(w, deaf.Name)); n > 0 {
		t.Errorf("%d nodes have it in their tables", n)
	}
}

// lie returns an answer to a query, with contacts that do not exist; exact states that there are no others.
func lie(question []byte, made func() string, count int) []byte {
	kind := question[0]
	if kind < 'a' {
		return nil
	}
	r := varint.Reader{Rest: question[1:]}
	w := varint.Writer{kind - 'a' + 'A'}
	w.Uint(r.Uint())
	switch kind {
	case 'f':
		w.Uint(uint64(count + 1))
	case 'n':
		w.Uint(rand.Uint64N(1 << 30))
		w.Bool(true)
	default:
		return w
	}
	w.Uint(uint64(count))
	for range count {
		w.String(made())
		w.Uint(0)
	}
	return w
}

// TestMadeUpContactsPushNobodyOut lets nodes of a network answer with contacts that do not exist, 64 or 10,000 at a
// time, with ids near to the node that queries them.
func TestMadeUpContactsPushNobodyOut(t *testing.T) {
	lookUps := testmain.Rounds(100, 300)
	for _, count := range []int{64, 10_000} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			w := quiet(t, 100)
			victim := w.RandomNode()
			var made []string // near to the victim: six leading bits in common, which most neighbors do not have
			for i := 0; len(made) < 3000; i++ {
				if name := fmt.Sprintf("made-up-%d", i); victim.ID.FirstDiff(w.IDOf(name)) < xor.Bits-6 {
					made = append(made, name)
				}
			}
			liars := map[string]bool{}
			for i, name := range names(victim.Neighbors(nil)) {
				if i%4 == 0 {
					liars[name] = true
					w.ByID(w.IDOf(name)).Reply = func(_ string, data []byte) []byte {
						return lie(data, func() string { return made[w.Rand().IntN(len(made))] }, count)
					}
				}
			}
			if count > 64 { // these are refused; a node whose messages are all refused counts as dead
				defer func() {
					if w.Refused == 0 {
						t.Error("no message was refused")
					}
				}()
			}
			honest := []string{}
			for _, name := range w.Closest(victim.ID, 17)[1:] {
				if !liars[name] {
					honest = append(honest, name)
				}
			}
			w.Reset()
			for i := range lookUps {
				victim.Handle(overlay.Find{ID: victim.ID.Distance(xor.Of(fmt.Sprint(i))), Tag: uint64(i), Want: 3})
				w.Run(time.Second)
				for _, name := range honest {
					if !victim.Table[name] {
						t.Fatalf("%s was pushed out", name)
					}
				}
			}
			w.Run(30 * time.Second)
			for _, f := range victim.Found {
				for _, c := range f.Closest {
					if w.ByID(c.ID) == nil {
						t.Fatalf("%s was found, which does not exist", c.Node)
					}
				}
			}
			if len(victim.Found) != lookUps {
				t.Errorf("%d of %d look-ups ended", len(victim.Found), lookUps)
			}
			for name := range victim.Table {
				if w.ByID(w.IDOf(name)) == nil {
					t.Errorf("%s is in the table, and does not exist", name)
				}
			}
			// The bound is two to three times the rate without malicious nodes.
			if m := rate(w, w.Messages, time.Duration(lookUps+30)*time.Second); m > 15 {
				t.Errorf("%.1f messages/s a node", m)
			}
			if bytes := sizeOf(func() { victim.Overlay = nil }); bytes > 200_000 {
				t.Errorf("the overlay holds %d bytes", bytes)
			} else {
				t.Logf("the overlay holds %d bytes", bytes)
			}
			runtime.KeepAlive(w)
		})
	}
}

// sizeOf returns how much memory is freed by forget.
func sizeOf(forget func()) int {
	var before, after runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&before)
	forget()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int(before.HeapAlloc) - int(after.HeapAlloc)
}

// TestMemory measures one node of 1,000. It has its own copies of names and of three addresses each, as if the other
// nodes ran elsewhere.
func TestMemory(t *testing.T) {
	o := overlay.New(overlay.Config{Self: overlay.Contact{Node: "self"}})
	now := time.Unix(1e9, 0)
	out := o.Step(now, []overlay.Event{overlay.Join{}}, nil)
	for i := range 1000 {
		c := overlay.Contact{Node: fmt.Sprintf("12D3KooWQYhTNQdmr3ArTeUHRYzFg94BKyTkoWBDW%011d", i)}
		for j := range 3 {
			c.Addrs = append(c.Addrs, fmt.Sprintf("/ip4/192.0.2.%d/udp/%d/quic-v1", j, 10000+i))
		}
		now = now.Add(2 * time.Second)
		events := []overlay.Event{overlay.Message{From: c, Data: []byte{'p', 1}}}
		for len(events) > 0 { // it answers queries
			out = o.Step(now, events, out[:0])
			events = events[:0]
			for _, a := range out {
				if s, is := a.(overlay.Send); is && s.Data[0] >= 'a' {
					answer := lie(s.Data, nil, 0)
					events = append(events, overlay.Message{From: s.To, Data: answer})
				}
			}
		}
	}
	clear(out[:cap(out)])
	n := o.Len()
	bytes := sizeOf(func() { o = nil })
	t.Logf("%d contacts of 1,000 nodes: %d bytes", n, bytes)
	if n < 60 || n > 200 || bytes > 200_000 {
		t.Errorf("%d contacts, %d bytes", n, bytes)
	}
}

// TestAddressesAreCarried follows addresses from the transport, and from reports of other nodes.
func TestAddressesAreCarried(t *testing.T) {
	o := overlay.New(overlay.Config{Self: overlay.Contact{Node: "self", Addrs: []string{"here"}}})
	now := time.Unix(1e9, 0)
	asked := map[string][]string{}
	var questions []overlay.Send
	step := func(e overlay.Event) {
		questions = questions[:0]
		for _, a := range o.Step(now, []overlay.Event{e}, nil) {
			if s, is := a.(overlay.Send); is && s.Data[0] >= 'a' {
				asked[s.To.Node] = s.To.Addrs
				questions = append(questions, s)
			}
		}
	}
	step(overlay.Join{Contacts: []overlay.Contact{{Node: "a", Addrs: []string{"by hand"}}}})
	if got := asked["a"]; !slices.Equal(got, []string{"by hand"}) {
		t.Fatalf("a is asked at %q", got)
	}
	answer := varint.Writer(lie(questions[0].Data, func() string { return "b" }, 1))
	answer = append(answer[:len(answer)-1], 2, 6, 'r', 'e', 'l', 'a', 'y', '1', 6, 'r', 'e', 'l', 'a', 'y', '2')
	step(overlay.Message{From: overlay.Contact{Node: "a", Addrs: []string{"proved"}}, Data: answer})
	if got := asked["b"]; !slices.Equal(got, []string{"relay1", "relay2"}) {
		t.Errorf("b is asked at %q", got)
	}
	c, _ := o.Closest(overlay.IDOf("a"), 2, nil)
	if len(c) != 2 || !slices.Equal(c[0].Addrs, []string{"proved"}) || !slices.Equal(c[1].Addrs, []string{"here"}) {
		t.Errorf("contacts are %+v", c)
	}
	step(overlay.Message{From: overlay.Contact{Node: "a", Addrs: []string{"moved"}}, Data: []byte{'p', 1}})
	if c = o.Neighbors(nil); !slices.Equal(c[0].Addrs, []string{"moved"}) {
		t.Errorf("after it has moved it is at %q", c[0].Addrs)
	}
}

// TestWhoWasAloneFindsAll starts a node while it is offline, so that its queries fail, and then lets it join through
// one node. It stays or is about to leave; in the latter case no node queries it, so it must find the others itself.
func TestWhoWasAloneFindsAll(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		for seconds := range 40 {
			w := overlaytest.New(uint64(seconds))
			joinAll(w, 8, 100*time.Millisecond)
			w.Run(time.Minute)
			others := w.Closest(w.Live()[0].ID, 8)
			name := w.Names(1)[0]
			w.Partition(func(a, b string) bool { return a == name || b == name })
			alone := w.Start(name, others...)
			w.Run(time.Duration(seconds) * time.Second)
			if leaves {
				alone.Handle(overlay.Leave{})
			}
			w.Partition(nil)
			alone.Handle(overlay.Join{Contacts: []overlay.Contact{{Node: others[0]}}})
			w.Run(15 * time.Second)
			if got := alone.Len(); got < len(others) {
				t.Errorf("after %d seconds who leaves (%v) knows %d of %d others", seconds, leaves, got, len(others))
			}
		}
	}
}

// TestWhoLeavesMeetsWhoAsks lets a node leave that has no contacts: it learns of the nodes that query it.
func TestWhoLeavesMeetsWhoAsks(t *testing.T) {
	w := overlaytest.New(3)
	leaves := w.Start("leaves", "nobody")
	w.Run(10 * time.Second)
	leaves.Handle(overlay.Leave{})
	other := w.Start("other", "leaves")
	w.Run(3 * time.Second)
	if !leaves.Table["other"] || other.Table["leaves"] {
		t.Errorf("who leaves knows %v, and is known by the other: %v", leaves.Table, other.Table)
	}
}
