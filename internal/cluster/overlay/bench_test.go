package overlay_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/overlay/overlaytest"
)

var many = sync.OnceValue(func() *overlaytest.World {
	w := overlaytest.New(1)
	joinAll(w, 500, 50*time.Millisecond)
	w.Run(time.Minute)
	return w
})

// amongMany returns a node of a network of 500, and another node that it knows.
func amongMany(b *testing.B) (w *overlaytest.World, n *overlaytest.Node, other string) {
	b.Helper()
	w = many()
	n = w.Live()[250]
	b.ReportAllocs()
	return w, n, names(n.Neighbors(nil))[3]
}

func step(b *testing.B, data []byte) {
	w, n, other := amongMany(b)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(w.Now())
	in := []overlay.Event{overlay.Message{From: overlay.Contact{Node: other}, Data: data}}
	var out []overlay.Action
	for b.Loop() {
		out = n.Step(now, in, out[:0])
	}
}

func BenchmarkStepPing(b *testing.B) { step(b, []byte{'p', 1}) }

func BenchmarkStepNeighbours(b *testing.B) {
	w := varint.Writer{'n', 1}
	w.Uint(0)
	w.Uint(1)
	step(b, w)
}

func BenchmarkStepFind(b *testing.B) {
	id := xor.Of("x")
	step(b, append(append([]byte{'f', 1}, id[:]...), 20))
}

func BenchmarkClosest(b *testing.B) {
	for _, n := range []int{3, 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			_, node, _ := amongMany(b)
			ids := make([]xor.ID, 256)
			for i := range ids {
				ids[i] = xor.Of(fmt.Sprint(i))
			}
			var out []overlay.Contact
			i := 0
			for b.Loop() {
				out, _ = node.Closest(ids[i%len(ids)], n, out[:0])
				i++
			}
		})
	}
}
