package hub

import (
	"reflect"
	"testing"

	"kumo/internal/strategy"
	"kumo/internal/strategy/leader"
	"kumo/internal/varint"
)

func TestMessages(t *testing.T) {
	want := []item{{kind: itemWant, host: "example.com"}, {kind: itemClaim, host: "", number: 1 << 60, text: "192.0.2"},
		{kind: itemOwner, host: "a", node: "n1~7"}}
	var w varint.Writer
	for i := range want {
		want[i].append(&w)
	}
	if items, err := parseItems(w); err != nil || !reflect.DeepEqual(items, want) {
		t.Errorf("%+v, %v", items, err)
	}
	for n := range w {
		if items, err := parseItems(w[:n]); err == nil && len(items) == len(want) {
			t.Errorf("%d of %d bytes are a whole message", n, len(w))
		}
	}
}

// FuzzMessages has a control unit, and a node, take whatever comes.
func FuzzMessages(f *testing.F) {
	w := varint.Writer{byte(leader.Question)}
	w.Uint(1)
	w.Uint(1)
	(&item{kind: itemClaim, host: "example.com"}).append(&w)
	f.Add([]byte(w))
	f.Add([]byte{byte(leader.Answer), 1, 2, itemYours, 1, 'a', 0, 0, 0})
	f.Add([]byte{byte(leader.Answer), 1, 2, itemList, 0, 0, 0, 3, 1, 'a', 0})
	f.Add([]byte{'n', 200, 2, 3, 'b', '~', '1'})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newCluster(t, "a~1", "b~1")
		c.settle()
		for _, h := range c.hubs {
			h.Step(c.now, []strategy.Event{strategy.Message{From: "b~1", Data: data}}, nil)
			h.Step(c.now, []strategy.Event{strategy.Message{From: "a~1", Data: data}}, nil)
			h.View().Owner("example.com")
		}
	})
}

// FuzzLog reads whatever is in the log.
func FuzzLog(f *testing.F) {
	c := newCluster(f, "a~1")
	c.settle()
	c.want("a~1", "example.com", "example.org")
	c.settle()
	for _, e := range c.log {
		f.Add(e)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entry := func(f func(uint64, []byte) error) error { return f(1, data) }
		_ = Look(c.hubs["a~1"].cfg.Key, entry, func(Host) bool { return true })
	})
}
