package p2p

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"kumo/internal/cluster/strategy"
)

// someone returns a node for a number.
func someone(t testing.TB, i int) (strategy.Node, peer.ID) {
	t.Helper()
	seed := make([]byte, 32)
	copy(seed, fmt.Sprint(i))
	_, key, err := crypto.GenerateEd25519Key(reader(seed))
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	node, err := nodeOf("n", id)
	if err != nil {
		t.Fatal(err)
	}
	return node, id
}

type reader []byte

func (r reader) Read(p []byte) (int, error) { return copy(p, r), nil }

// However many nodes are reported, a book has a bounded number, the last used ones; and a node's own addresses are
// kept.
func TestBook(t *testing.T) {
	dir := t.TempDir()
	b, err := openBook(dir, 100)
	if err != nil {
		t.Fatal(err)
	}
	at := func(i int) []string { return []string{fmt.Sprintf("/ip4/192.0.2.%d/tcp/%d", i%250, 1000+i)} }
	friend, friendID := someone(t, -1)
	b.put(friend, friendID, parsed(at(1)), true)
	for i := range 1000 {
		node, id := someone(t, i)
		b.put(node, id, parsed(at(i)), false)
		b.put(friend, friendID, parsed([]string{"/ip4/192.0.2.1/tcp/666", "nonsense", ""}), false)
		if got := texts(b.addrs(friendID)); len(got) != 2 || got[0] != at(1)[0] {
			t.Fatalf("the friend is at %v", got)
		}
		if len(b.entries) > 100 {
			t.Fatalf("%d pages", len(b.entries))
		}
	}
	if _, id := someone(t, 999); len(b.addrs(id)) != 1 {
		t.Error("the last is not known")
	}
	if _, id := someone(t, 0); b.addrs(id) != nil {
		t.Error("the first is still known")
	}
	if met := b.met(10); len(met) != 1 || met[0].Node != friend {
		t.Errorf("met: %v", met)
	}
}

// The file has the nodes that were connected last, and no more than maxSaved.
func TestBookFile(t *testing.T) {
	dir := t.TempDir()
	m := Messenger{}
	var err error
	if m.book, err = openBook(dir, 4096); err != nil {
		t.Fatal(err)
	}
	for i := range maxSaved + 50 {
		node, id := someone(t, i)
		m.book.put(node, id, parsed([]string{fmt.Sprintf("/ip4/192.0.2.1/tcp/%d", i+1)}), true)
	}
	if err := m.saveBook(); err != nil {
		t.Fatal(err)
	}
	again, err := openBook(dir, 4096)
	if err != nil {
		t.Fatal(err)
	}
	want := m.book.met(maxSaved)
	got := again.met(2 * maxSaved)
	if !slices.EqualFunc(got, want, func(x, y Contact) bool {
		return x.Node == y.Node &&
			slices.Equal(x.Addrs, y.Addrs)
	}) {
		t.Errorf("%d nodes came back, want %d in the same order", len(got), len(want))
	}
	if last, _ := someone(t, maxSaved+49); len(got) != maxSaved || got[0].Node != last {
		t.Errorf("%d nodes, the first is %s", len(got), got[0].Node)
	}
	if _, err := os.Stat(filepath.Join(dir, bookFile+".tmp")); err == nil {
		t.Error("a temporary file is left")
	}
}

func TestRanked(t *testing.T) {
	all := parsed([]string{"/ip4/127.0.0.1/tcp/1", "/ip4/10.0.0.1/tcp/1", "/ip4/8.8.8.8/tcp/1/p2p/" + someoneID(t),
		"/ip4/8.8.4.4/tcp/1/p2p/" + someoneID(t) + "/p2p-circuit", "/ip4/10.0.0.1/tcp/1", "/dns4/example.org/tcp/1"})
	want := []string{"/ip4/8.8.8.8/tcp/1", "/ip4/10.0.0.1/tcp/1", "/dns4/example.org/tcp/1",
		"/ip4/8.8.4.4/tcp/1/p2p/" + someoneID(t) + "/p2p-circuit"}
	slices.Sort(want[1:3])
	got := texts(all)
	if len(got) > 2 {
		slices.Sort(got[1:3])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("/ip4/8.8.8.%d/tcp/1", i))
	}
	many = append(many, want[3])
	if got := texts(ranked(parsed(slices.Concat(want[3:], many)))); len(got) != maxAddrs-1 || got[len(got)-1] != want[3] {
		t.Errorf("%v", got)
	}
	if got := texts(parsed([]string{"/ip4/127.0.0.1/tcp/1"})); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

func someoneID(t testing.TB) string {
	_, id := someone(t, 1)
	return id.String()
}
