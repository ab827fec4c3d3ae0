package crawl

import (
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/content/cookies"
	"kumo/internal/state/transfer"
)

// Cookies that a server sets on one node are sent by the next owner of the host, even after both nodes were restarted,
// and by no other node.
func TestCookiesComeWithTheirHost(t *testing.T) {
	x := newTrade(t, 1, false)
	a, b := x.nodes[0], x.nodes[1]
	at, other := cookies.Target{Host: "w.moves.test", Path: "/"}, cookies.Target{Host: "stays.test", Path: "/"}
	pack := chunkWriterAt(t)
	for _, host := range []string{"w.moves.test", "stays.test"} {
		pack.BeginPending(host, transfer.HostTiming{})
		pack.Item(&item.Item{URL: "http://" + host + "/"})
	}
	to := member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3, Attempt: 1}
	if err := takeWhole(t.Context(), a.e, to, 0, true, pack.Chunk()); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	a.e.runner.visits.hops.jar.Store([]string{"n=1; Domain=moves.test", "m=1; Max-Age=1000"}, at, false, now)
	a.e.runner.visits.hops.jar.Store([]string{"secret=1"}, at, true, now)
	a.e.runner.visits.hops.jar.Store([]string{"n=1"}, other, false, now)
	if err := a.e.ledger.Commit(); err != nil {
		t.Fatal(err)
	}
	a.again()
	if n := a.e.runner.visits.hops.jar.Len(); n != 3 {
		t.Fatalf("%d cookies after a restart", n)
	}
	out, err := a.e.Transfers().Export(func(host string) strategy.Node {
		if host == "w.moves.test" {
			return b.name()
		}
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	back := member.Transfer{From: "n0~1", To: "n1~1", Epoch: 4, Attempt: 1}
	seq := uint64(0)
	for ; ; seq++ {
		node, data, err := out.Next()
		if err != nil {
			t.Fatal(err)
		}
		if err := takeWhole(t.Context(), b.e, back, seq, node == "", data); err != nil {
			t.Fatal(err)
		}
		if node == "" {
			break
		}
	}
	b.again()
	if n := b.e.runner.visits.hops.jar.Append(nil, at, now); len(n) != 2 || len(b.e.runner.visits.hops.jar.Append(nil, other, now)) > 0 {
		t.Errorf("it has %v", n)
	}
}

// Cookies of a host that another node has released are sent here, also after a restart; its secret ones are not.
func TestAddCookies(t *testing.T) {
	x := newTrade(t, 1, false)
	a, b := x.nodes[0], x.nodes[1]
	const host = "w.moves.test:8080"
	at, now := cookies.Target{Host: "w.moves.test", Path: "/"}, time.Now()
	a.e.runner.visits.hops.jar.Store([]string{"n=1; Domain=moves.test", "m=1; Max-Age=1000"}, at, false, now)
	a.e.runner.visits.hops.jar.Store([]string{"secret=1"}, at, true, now)
	data := a.e.Dispatches.HostCookies(host, 1<<16)
	if err := b.e.Dispatches.AddCookies("other.test", data); err == nil {
		t.Error("cookies of another host are added")
	}
	if err := b.e.Dispatches.AddCookies(host, data); err != nil {
		t.Fatal(err)
	}
	if err := b.e.ledger.Commit(); err != nil {
		t.Fatal(err)
	}
	b.again()
	if n := b.e.runner.visits.hops.jar.Append(nil, at, now); len(n) != 2 {
		t.Errorf("it has %v", n)
	}
}
