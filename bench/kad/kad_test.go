package kad

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	kbucket "github.com/libp2p/go-libp2p-kbucket"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/overlay/overlaytest"
)

// peerOf returns a peer ID whose hash is that of a node: kbucket hashes the bytes of a peer ID, whatever they are.
func peerOf(node string) peer.ID {
	var all []byte
	for _, part := range []string{"node", node} {
		all = binary.BigEndian.AppendUint64(all, uint64(len(part)))
		all = append(all, part...)
	}
	return peer.ID(all)
}

func TestIDsAreTheSame(t *testing.T) {
	for range 1000 {
		node := strconv.FormatUint(rand.Uint64(), 36)
		if got, want := overlay.IDOf(node), xor.ID(kbucket.ConvertPeerID(peerOf(node))); got != want {
			t.Fatalf("%s: %x, want %x", node, got, want)
		}
	}
}

// sorted returns the peers closest to an id first, as sorted by kbucket.
func sorted(nodes []string, id xor.ID, n int) []peer.ID {
	peers := make([]peer.ID, len(nodes))
	for i, node := range nodes {
		peers[i] = peerOf(node)
	}
	peers = kbucket.SortClosestPeers(peers, id[:])
	return peers[:min(n, len(peers))]
}

func peers(contacts []overlay.Contact) (all []peer.ID) {
	for _, c := range contacts {
		all = append(all, peerOf(c.Node))
	}
	return all
}

// TestClosestNodesAreTheSame generates 1,000 random networks. In each, nodes look up random ids, and must find the
// closest of all live nodes according to kbucket, and sort their own tables as kbucket's routing table does.
func TestClosestNodesAreTheSame(t *testing.T) {
	networks := 1000
	if testing.Short() {
		networks = 50
	}
	first := rand.Uint64()
	lookUps, tables := 0, 0
	for seed := first; seed < first+uint64(networks); seed++ {
		w := overlaytest.New(seed)
		w.Config.K = 20
		for _, name := range w.Names(2 + w.Rand().IntN(40)) {
			if len(w.Live()) == 0 {
				w.Start(name)
			} else {
				w.Start(name, w.RandomNode().Name)
			}
			w.Run(100 * time.Millisecond)
		}
		w.Run(8 * time.Second)
		if live := w.Live(); len(live) > 10 {
			w.Crash(w.RandomNode())
			w.Crash(w.RandomNode())
			w.Run(40 * time.Second) // with 12 s, one network in some 10,000 has not settled yet
		}
		var live []string
		for _, n := range w.Live() {
			live = append(live, n.Name)
		}
		for range 3 {
			id := xor.Of(strconv.FormatUint(w.Rand().Uint64(), 36))
			n, want := w.RandomNode(), 1+w.Rand().IntN(20)
			n.Found = map[uint64]overlay.Found{}
			n.Handle(overlay.Find{ID: id, Tag: 1, Want: want})
			for range 100 {
				if len(n.Found) == 0 {
					w.Run(100 * time.Millisecond)
				}
			}
			lookUps++
			if got := peers(n.Found[1].Closest); !slices.Equal(got, sorted(live, id, want)) {
				t.Fatalf("seed %d: of %d nodes, %s found for %x %v", seed, len(live), n.Name, id, n.Found[1])
			}
		}
		tables += sameAsRoutingTable(t, w.RandomNode(), w.Rand())
	}
	t.Logf("%d look-ups, %d questions to tables", lookUps, tables)
}

// sameAsRoutingTable adds a node's contacts to a routing table of kbucket, and compares the closest to random ids.
func sameAsRoutingTable(t *testing.T, n *overlaytest.Node, rng *rand.Rand) (asked int) {
	t.Helper()
	metrics := peerstore.NewMetrics()
	table, err := kbucket.NewRoutingTable(len(n.Table)+1, n.ID[:], time.Minute, metrics, time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for name := range n.Table {
		if _, err := table.TryAddPeer(peerOf(name), true, false); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		id, count := xor.Of(strconv.FormatUint(rng.Uint64(), 36)), 1+rng.IntN(20)
		got, _ := n.Closest(id, count+1, nil)
		got = slices.DeleteFunc(got, func(c overlay.Contact) bool { return c.Node == n.Name })
		if want := table.NearestPeers(id[:], count); !slices.Equal(peers(got[:min(count, len(got))]), want) {
			t.Fatalf("%s has %d contacts, of which closest to %x are %v, want %q", n.Name, len(n.Table), id, got, want)
		}
		asked++
	}
	return asked
}
