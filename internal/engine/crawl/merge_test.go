package crawl

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/state/entry"
	"kumo/internal/state/seen"
	"kumo/internal/state/transfer"
)

// waitingChunk returns a chunk with sorted pending URLs, which are also known.
func waitingChunk(t testing.TB, urls ...string) []byte {
	t.Helper()
	return chunkOf(t, nil, urls...)
}

// chunkOf is waitingChunk with hosts cut into slices.
func chunkOf(t testing.TB, slices *item.Slices, urls ...string) []byte {
	t.Helper()
	pack := chunkWriterAt(t)
	for _, url := range urls {
		pack.BeginPending(slices.Of(url), transfer.HostTiming{})
		pack.Item(&item.Item{URL: url, Seed: "http://elsewhere.test/"})
		origin := item.OriginOf(url)
		pack.BeginKnown(origin, transfer.HostTiming{})
		pack.Entry(url[len(origin):], &seen.Entry{URL: url, State: seen.Known, First: pack.Now})
	}
	return pack.Chunk()
}

// wantWaiting checks the pending URLs, each once, and which hosts are away.
func (n *trader) wantWaiting(when string, urls []string, away ...string) {
	n.t.Helper()
	want := map[string]int{}
	for _, url := range urls {
		want[url]++
	}
	if waits, err := waitingAt(n.e.frontier, n.e.abandons.abandoned); err != nil || !maps.Equal(waits, want) {
		n.t.Errorf("%s %v wait, not %v; %v", when, waits, want, err)
	}
	for host := range n.owner {
		if n.e.Transfers().IsAway(host) != slices.Contains(away, host) {
			n.t.Errorf("%s %s is away: %v", when, host, n.e.Transfers().IsAway(host))
		}
	}
}

// sameState checks that journal and engine agree on transfers and on the number of pending URLs.
func (n *trader) sameState(when string, waiting int) {
	n.t.Helper()
	live := n.e.Dispatches.transfer.Unsettled.Clone()
	n.close()
	var closers []func() error
	_, s, err := n.recall(&closers)
	if err != nil {
		n.t.Fatal(err)
	}
	if !reflect.DeepEqual(s.Unsettled, live) || s.Pending() != waiting {
		n.t.Errorf("%s %d wait, not %d; the journal says %+v, and the engine %+v", when, s.Pending(), waiting, s.Unsettled,
			live)
	}
	for _, c := range closers {
		err = errors.Join(err, c())
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.open()
}

// A transfer of a host that is held here is merged: URLs that are pending or visited here are not added again, the host
// continues to be crawled, and it stays if the transfer is dropped. This holds in this life, in the next one, and in
// the recovered state. Other hosts of the transfer are removed.
func TestAHostThatIsHeldIsKept(t *testing.T) {
	for _, points := range []string{"", "before", "after", "before, after"} {
		for _, how := range []string{"dropped", "replayed", "folded", "whole"} {
			t.Run(fmt.Sprintf("checkpoint %s/%s", points, how), func(t *testing.T) { keptHost(t, points, how) })
		}
	}
}

func keptHost(t *testing.T, points, how string) {
	x := newTrade(t, 1, false)
	n := x.nodes[0]
	x.owner = map[string]int{"held.test": 0, "comes.test": 1}
	point := func(name string) {
		if (points == name || points == "before, after") && n.e.Checkpoints.checkpoint(t.Context()) != nil {
			t.Fatal("no checkpoint")
		}
	}
	x.urls["http://held.test/done"] = &fact{host: "held.test"}
	if err := n.link("http://held.test/done"); err != nil {
		t.Fatal(err)
	}
	for !x.urls["http://held.test/done"].done {
		n.visit()
	}
	held := []string{"http://held.test/1", "http://held.test/2"}
	for _, url := range held {
		if err := n.link(url); err != nil {
			t.Fatal(err)
		}
	}
	point("before")
	// not a page
	n.e.frontier.Push("held.test", item.Item{URL: "http://held.test/robots.txt", Robots: "http://held.test"})
	var arrived []string
	n.e.Dispatches.transfer.OnReceived = func(_ member.Transfer, hosts []string) { arrived = append(arrived, hosts...) }
	from := member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3, Attempt: 1}
	merged := append(held, "http://held.test/3", "http://held.test/4", "http://held.test/robots.txt")
	pack := chunkWriterAt(t) // its known URLs are yet to come
	pack.BeginPending("held.test", transfer.HostTiming{})
	for _, path := range []string{"4", "3", "robots.txt"} {
		pack.Item(&item.Item{URL: "http://held.test/" + path})
	}
	first := waitingChunk(t, "http://comes.test/", "http://held.test/2", "http://held.test/done", "http://held.test/3")
	for seq, chunk := range [][]byte{first, pack.Chunk()} {
		if err := takeWhole(t.Context(), n.e, from, uint64(seq), false, chunk); err != nil {
			t.Fatal(err)
		}
	}
	n.wantWaiting("under way", append(merged, "http://comes.test/"))
	for host := range x.owner {
		if i, _ := n.e.frontier.Host(host); i.Parked != (host == "comes.test") {
			t.Errorf("%s is parked: %v", host, i.Parked)
		}
	}
	if err := n.link("http://held.test/4"); err != nil || len(arrived) > 0 {
		t.Fatal(arrived, err)
	}
	n.wantWaiting("after a link that is known", append(merged, "http://comes.test/"))
	point("after")
	switch how {
	case "dropped":
		if err := n.e.Transfers().Drop(t.Context(), from); err != nil {
			t.Fatal(err)
		}
		n.wantWaiting("dropped", merged, "comes.test")
		n.sameState("dropped", len(merged))
		n.wantWaiting("in the next life", merged, "comes.test")
	case "replayed":
		n.sameState("under way", len(merged)+1)
		if err := errors.Join(n.link("http://held.test/robots.txt"), n.e.Checkpoints.resolvePending(t.Context())); err != nil {
			t.Fatal(err)
		}
		n.wantWaiting("in the next life", merged, "comes.test")
		n.again()
		n.wantWaiting("in the one after", merged, "comes.test")
	case "folded":
		x.wantFolded(n, merged)
	case "whole":
		if err := takeWhole(t.Context(), n.e, from, 2, true, nil); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(arrived, []string{"comes.test", "held.test"}) {
			t.Errorf("%q have arrived", arrived)
		}
		if err := takeWhole(t.Context(), n.e, from, 2, true, nil); err != nil || len(arrived) > 2 {
			t.Error("the last chunk is taken twice", err)
		}
		if i, _ := n.e.frontier.Host("comes.test"); i.Parked {
			t.Error("it is parked for good")
		}
		n.sameState("whole", len(merged)+1)
		n.wantWaiting("in the next life", append(merged, "http://comes.test/"))
	}
}

// wantFolded checks the recovered state of a node that has handed over some hosts.
func (x *trade) wantFolded(n *trader, urls []string, gone ...member.Moved) {
	n.close()
	n.close = func() {}
	var closers []func() error
	_, s, err := n.recall(&closers)
	if err != nil {
		x.t.Fatal(err)
	}
	estate, err := s.BuildHolding(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	for _, is := range gone {
		estate.Forget(is)
	}
	export, err := estate.Export(func(string) strategy.Node { return "heir" })
	if err != nil {
		x.t.Fatal(err)
	}
	var got []string
	for to := strategy.Node("heir"); to != ""; {
		var data []byte
		if to, data, err = export.Next(); err != nil {
			x.t.Fatal(err)
		}
		p, err := decodeChunk(x.t, data)
		if err != nil {
			x.t.Fatal(err)
		}
		for _, a := range p.Pending {
			for _, it := range a.Items {
				got = append(got, it.URL)
			}
		}
	}
	if slices.Sort(got); !slices.Equal(got, urls) {
		x.t.Errorf("%v were folded, not %v", got, urls)
	}
	err = export.Close()
	for _, c := range closers {
		err = errors.Join(err, c())
	}
	if err != nil {
		x.t.Fatal(err)
	}
}

// A host comes from one node while this one hands it over to another: received URLs are not removed with those handed
// over, in this life, the next one, and the recovered state. They are handed over in the next epoch.
func TestWhatComesWhileAHostGoesStays(t *testing.T) {
	const epoch = 3
	goes := func(epoch uint64) member.Moved {
		return func(host string, came uint64) bool { return host == "goes.test" && came < epoch }
	}
	for _, held := range []bool{false, true} {
		for _, came := range []uint64{epoch - 1, epoch} {
			for _, then := range []string{"", "checkpoint", "again", "checkpoint, again", "folded", "checkpoint, folded"} {
				t.Run(fmt.Sprintf("held %v/came under %d/%s", held, came, then), func(t *testing.T) {
					x := newTrade(t, 1, false)
					n := x.nodes[0]
					x.owner = map[string]int{"goes.test": 0, "stays.test": 0}
					all := []string{"http://stays.test/", "http://goes.test/1", "http://goes.test/2"}
					if held {
						all = append(all, "http://goes.test/held")
					}
					for _, i := range []int{0, 3} {
						if i < len(all) && n.link(all[i]) != nil {
							t.Fatal("no link is found")
						}
					}
					from := member.Transfer{From: "n1~1", To: "n0~1", Epoch: came, Attempt: 1}
					for i, url := range all[1:3] {
						if err := takeWhole(t.Context(), n.e, from, uint64(i), i == 1, waitingChunk(t, url)); err != nil {
							t.Fatal(err)
						}
					}
					if strings.Contains(then, "checkpoint") && n.e.Checkpoints.checkpoint(t.Context()) != nil {
						t.Fatal("no checkpoint")
					}
					if strings.Contains(then, "again") {
						n.again()
					}
					var away []string
					if came < epoch {
						all, away = all[:1], []string{"goes.test"}
					}
					if strings.Contains(then, "folded") {
						slices.Sort(all)
						x.wantFolded(n, all, goes(epoch))
						return
					}
					if err := n.e.Transfers().Forget(t.Context(), goes(epoch), nil); err != nil {
						t.Fatal(err)
					}
					n.wantWaiting("under the epoch", all, away...)
					n.again()
					n.wantWaiting("in the next life", all, away...)
					if err := n.e.Transfers().Forget(t.Context(), goes(epoch+1), nil); err != nil {
						t.Fatal(err)
					}
					n.wantWaiting("under the next", []string{"http://stays.test/"}, "goes.test")
					n.again()
					n.wantWaiting("in the end", []string{"http://stays.test/"}, "goes.test")
				})
			}
		}
	}
}

// URLs received in a transfer under way stay, too, when this node removes the part of the host that it had.
func TestWhatIsUnderWayWhileAHostGoesStays(t *testing.T) {
	x := newTrade(t, 1, false)
	n := x.nodes[0]
	x.owner = map[string]int{"goes.test": 0}
	if err := n.link("http://goes.test/held"); err != nil {
		t.Fatal(err)
	}
	from := member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3, Attempt: 1}
	if err := takeWhole(t.Context(), n.e, from, 0, false, waitingChunk(t, "http://goes.test/1")); err != nil {
		t.Fatal(err)
	}
	gone := func(_ string, came uint64) bool { return came < 3 }
	if err := n.e.Transfers().Forget(t.Context(), gone, nil); err != nil {
		t.Fatal(err)
	}
	if err := takeWhole(t.Context(), n.e, from, 1, true, nil); err != nil {
		t.Fatal(err)
	}
	n.wantWaiting("when all has come", []string{"http://goes.test/1", "http://goes.test/held"})
}

// A node has found a URL of a host, and seen has yet to decide whether it is new, when the host comes with a transfer.
// Once that is decided, the host is held here, so it stays with all its URLs if the transfer is dropped: in this life,
// in the next one, and in the recovered state.
func TestAHostIsKeptOfWhichSomethingIsFound(t *testing.T) {
	for _, checkpoint := range []string{"", "found", "taken", "decided", "found, taken, decided"} {
		for _, how := range []string{"dropped", "replayed", "folded", "whole"} {
			t.Run(fmt.Sprintf("checkpoint %s/%s", checkpoint, how), func(t *testing.T) {
				foundMeanwhile(t, strings.Split(checkpoint, ", "), how)
			})
		}
	}
}

func foundMeanwhile(t *testing.T, checkpoints []string, how string) {
	x := newTrade(t, 1, false)
	n := x.nodes[0]
	point := func(name string) {
		if slices.Contains(checkpoints, name) && n.e.Checkpoints.checkpoint(t.Context()) != nil {
			t.Fatal("no checkpoint")
		}
	}
	x.owner = map[string]int{"late.test": 0, "comes.test": 1}
	n.waver("http://late.test/found")
	x.owner["late.test"] = 1
	point("found")
	from := member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3, Attempt: 1}
	takes := func(seq uint64, last bool, urls ...string) {
		t.Helper()
		if err := takeWhole(t.Context(), n.e, from, seq, last, waitingChunk(t, urls...)); err != nil {
			t.Fatal(err)
		}
	}
	takes(0, false, "http://comes.test/", "http://late.test/came")
	point("taken")
	if i, _ := n.e.frontier.Host("late.test"); i.Parked != n.e.known.pendingDedup() {
		t.Errorf("undecided: %v; parked: %v", n.e.known.pendingDedup(), i.Parked)
	}
	if err := n.e.Checkpoints.resolvePending(t.Context()); err != nil {
		t.Fatal(err)
	}
	point("decided")
	takes(1, false, "http://late.test/more", "http://late.test/found")
	held := []string{"http://late.test/came", "http://late.test/found", "http://late.test/more"}
	n.wantWaiting("under way", append(held, "http://comes.test/"))
	for host := range x.owner {
		if i, _ := n.e.frontier.Host(host); i.Parked != (host == "comes.test") {
			t.Errorf("%s is parked: %v", host, i.Parked)
		}
	}
	switch how {
	case "dropped":
		if err := n.e.Transfers().Drop(t.Context(), from); err != nil {
			t.Fatal(err)
		}
		n.wantWaiting("dropped", held, "comes.test")
		n.sameState("dropped", len(held))
		n.wantWaiting("in the next life", held, "comes.test")
	case "replayed":
		n.sameState("under way", len(held)+1)
		n.wantWaiting("in the next life", held, "comes.test")
		n.again()
		n.wantWaiting("in the one after", held, "comes.test")
	case "folded":
		x.wantFolded(n, held)
	case "whole":
		takes(2, true)
		n.sameState("whole", len(held)+1)
		n.wantWaiting("in the next life", append(held, "http://comes.test/"))
	}
}

// While transfers are undone, URLs are found at hosts that are about to be removed: before their part's turn, and
// within it.
func TestADropSparesHostsOfWhichSomethingIsFound(t *testing.T) {
	x := newTrade(t, 1, false)
	n := x.nodes[0]
	x.owner = map[string]int{"early.test": 1, "goes.test": 1, "now.test": 1}
	from := member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3, Attempt: 1}
	came := []string{"http://early.test/", "http://goes.test/", "http://now.test/"}
	if err := takeWhole(t.Context(), n.e, from, 0, false, waitingChunk(t, came...)); err != nil {
		t.Fatal(err)
	}
	part := n.e.Transfers().Unsettled.DroppedHosts(from)
	finds := func(url string, meanwhile func()) {
		t.Helper()
		err := n.e.ledger.Within(func() error {
			it := item.Item{URL: url, Kind: page.Anchor}
			var enc entry.Encoder
			enc.Found(&it)
			n.e.ledger.Enqueue(enc.Writer)
			meanwhile()
			n.e.frontier.Push(it.Host(), it)
			n.e.Transfers().Committed([]entry.Candidate{{Host: it.Host(), Item: it}})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	finds("http://early.test/found", func() {})
	dropped := make(chan error)
	finds("http://now.test/found", func() {
		go func() { dropped <- n.e.Transfers().DropPart(part) }()
		for range 100 {
			runtime.Gosched()
		}
	})
	if err := errors.Join(<-dropped, n.e.ledger.FlushDurable(t.Context())); err != nil {
		t.Fatal(err)
	}
	want := []string{"http://early.test/", "http://early.test/found", "http://now.test/", "http://now.test/found"}
	n.wantWaiting("after a part", want, "goes.test")
	n.sameState("after a part", len(want))
	n.wantWaiting("in the next life", want, "goes.test")
}

// A node crashes while a URL is undecided at a host of which a part has come; recovery from its journal alone decides
// at once that the URL is new. It is pending in the next life and in the recovered state, although the transfer is
// dropped.
func TestWhatIsGuessedOfAHostThatComesStays(t *testing.T) {
	for _, how := range []string{"replayed", "folded"} {
		for _, dropped := range []bool{false, true} { // before the crash
			x := newTrade(t, 1, false)
			n := x.nodes[0]
			n.keeps = true
			x.owner = map[string]int{"late.test": 0}
			n.waver("http://late.test/found")
			x.owner["late.test"] = 1
			from := member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3, Attempt: 1}
			if err := takeWhole(t.Context(), n.e, from, 0, false, waitingChunk(t, "http://late.test/came")); err != nil {
				t.Fatal(err)
			}
			if dropped {
				if err := n.e.Transfers().Drop(t.Context(), from); err != nil {
					t.Fatal(err)
				}
			}
			n.close()
			if err := os.RemoveAll(filepath.Join(n.dir, "seen")); err != nil {
				t.Fatal(err)
			}
			if how == "folded" {
				x.wantFolded(n, []string{"http://late.test/found"})
				continue
			}
			n.open()
			waits, err := waitingAt(n.e.frontier, n.e.abandons.abandoned)
			if err != nil || waits["http://late.test/found"] != 1 {
				t.Errorf("dropped %v: %v wait, %v", dropped, waits, err)
			}
			n.sameState("in the next life", len(waits))
		}
	}
}

// A node crashes while a URL is undecided, and the host's previous owner has visited the URL since.
func TestWhatComesAsKnownIsNotGuessed(t *testing.T) {
	x := newTrade(t, 1, false)
	n := x.nodes[0]
	n.keeps = true
	x.owner = map[string]int{"late.test": 0}
	n.e.known.db.UpdateMeta("http://late.test/noted", seen.Meta{Kind: 1})
	n.waver("http://late.test/visited")
	if err := n.link("http://late.test/noted"); err != nil || n.e.known.pending() != 2 {
		t.Fatal(n.e.known.pending(), err)
	}
	pack := chunkWriterAt(t)
	pack.BeginKnown("http://late.test", transfer.HostTiming{})
	// and never met
	pack.Entry("/noted", &seen.Entry{URL: "http://late.test/noted", First: pack.Now, Meta: seen.Meta{Kind: 1}})
	pack.Entry("/visited", &seen.Entry{URL: "http://late.test/visited", State: seen.Known, First: pack.Now,
		Meta: seen.Meta{Fetched: pack.Now, Status: 200}})
	from := member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3, Attempt: 1}
	if err := takeWhole(t.Context(), n.e, from, 0, true, pack.Chunk()); err != nil {
		t.Fatal(err)
	}
	n.close()
	if err := os.RemoveAll(filepath.Join(n.dir, "seen")); err != nil {
		t.Fatal(err)
	}
	n.open()
	n.wantWaiting("in the next life", []string{"http://late.test/noted"})
}

// Two transfers bring the same host. It is removed when both are dropped, and stays with all its URLs as soon as one is
// complete.
func TestTwoTransfersBringAHost(t *testing.T) {
	one, two := member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3, Attempt: 1},
		member.Transfer{From: "n2~1", To: "n0~1", Epoch: 3, Attempt: 1}
	for _, c := range []struct {
		first, second member.Transfer
		whole         [2]bool
	}{
		{one, two, [2]bool{true, true}}, {one, two, [2]bool{true, false}}, {one, two, [2]bool{false, true}},
		{one, two, [2]bool{false, false}},
		{two, one, [2]bool{true, true}}, {two, one, [2]bool{true, false}}, {two, one, [2]bool{false, true}},
		{two, one, [2]bool{false, false}},
	} {
		for _, more := range []bool{false, true} { // received between the two ends
			name := fmt.Sprintf("%s ends first/whole %v/more %v", c.first.From, c.whole, more)
			t.Run(name, func(t *testing.T) {
				x := newTrade(t, 1, false)
				n := x.nodes[0]
				x.owner = map[string]int{"both.test": 1, "one.test": 1, "two.test": 1}
				var want []string
				take := func(tr member.Transfer, seq uint64, last bool, urls ...string) {
					t.Helper()
					if err := takeWhole(t.Context(), n.e, tr, seq, last, waitingChunk(t, urls...)); err != nil {
						t.Fatal(err)
					}
					want = append(want, urls...)
				}
				take(one, 0, false, "http://both.test/1", "http://one.test/")
				take(two, 0, false, "http://both.test/2", "http://two.test/")
				if all := n.e.Dispatches.transfer.Unsettled.IncomingHosts(); len(all) != 3 {
					t.Errorf("%v are on their way", all)
				}
				end := func(tr member.Transfer, seq uint64, whole bool) {
					if whole {
						take(tr, seq, true)
					} else if err := n.e.Transfers().Drop(t.Context(), tr); err != nil {
						t.Fatal(err)
					}
				}
				end(c.first, 1, c.whole[0])
				seq := uint64(1)
				if more {
					take(c.second, seq, false, "http://both.test/3")
					seq++
					if kept := n.e.Dispatches.transfer.Unsettled.Coming[0].Kept; slices.Contains(kept, "both.test") != c.whole[0] {
						t.Errorf("%v are kept", kept)
					}
				}
				if i, _ := n.e.frontier.Host("both.test"); i.Parked == c.whole[0] {
					t.Errorf("after the first end it is parked: %v", i.Parked)
				}
				end(c.second, seq, c.whole[1])
				i, _ := n.e.frontier.Host("both.test")
				if i.Parked {
					t.Error("it is parked for good")
				}
				var away []string
				ends := map[string]bool{hostOfTransfer(c.first): c.whole[0], hostOfTransfer(c.second): c.whole[1],
					"both.test": c.whole[0] || c.whole[1]}
				for host, stays := range ends {
					if !stays {
						away = append(away, host)
						want = slices.DeleteFunc(want, func(url string) bool { return item.HostOf(url) == host })
					}
				}
				n.wantWaiting("in the end", want, away...)
				n.sameState("in the end", len(want))
				n.wantWaiting("in the next life", want, away...)
			})
		}
	}
}

func hostOfTransfer(t member.Transfer) string {
	if t.From == "n1~1" {
		return "one.test"
	}
	return "two.test"
}

// A merged host gets the longer of both delays, and of both current waits.
func TestAKeptHostHasBothClocks(t *testing.T) {
	x := newTrade(t, 1, false)
	n := x.nodes[0]
	x.owner = map[string]int{"a.test": 0, "b.test": 0}
	pack := chunkWriterAt(t)
	for host, asked := range map[string]time.Duration{"a.test": 0, "b.test": 9 * time.Second} {
		if err := n.link("http://" + host + "/"); err != nil {
			t.Fatal(err)
		}
		n.e.frontier.SetDelay(host, 5*time.Second)
		pack.BeginPending(host, transfer.HostTiming{RequestedDelay: asked, Wait: time.Minute})
		pack.Item(&item.Item{URL: "http://" + host + "/new"})
	}
	if err := takeWhole(t.Context(), n.e, member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3}, 0, true,
		pack.Chunk()); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]time.Duration{"a.test": 5 * time.Second, "b.test": 9 * time.Second} {
		if i, _ := n.e.frontier.Host(host); i.RequestedDelay != want || time.Until(i.Next) < 50*time.Second {
			t.Errorf("%+v", i)
		}
	}
}

// TestDuplicatesAreCounted: pages that both nodes have fetched are counted when one hands the host to the other, once.
func TestDuplicatesAreCounted(t *testing.T) {
	x := newTrade(t, 1, false)
	n := x.nodes[0]
	x.owner = map[string]int{"held.test": 0}
	const done = "http://held.test/done"
	x.urls[done] = &fact{host: "held.test"}
	if err := n.link(done); err != nil {
		t.Fatal(err)
	}
	for !x.urls[done].done {
		n.visit()
	}
	pack := chunkWriterAt(t)
	pack.BeginKnown("http://held.test", transfer.HostTiming{})
	for _, path := range []string{"/done", "/elsewhere"} {
		pack.Entry(path, &seen.Entry{URL: "http://held.test" + path, State: seen.Known, First: pack.Now,
			Meta: seen.Meta{Fetched: pack.Now, Status: 200}})
	}
	from := member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3, Attempt: 1}
	chunk := pack.Chunk()
	for range 2 { // the second one is a repetition
		if err := takeWhole(t.Context(), n.e, from, 0, false, chunk); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.e.Transfers().Duplicates(); got != 1 {
		t.Errorf("%d duplicates are counted, want 1", got)
	}
}
