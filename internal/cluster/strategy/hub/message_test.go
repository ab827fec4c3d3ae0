package hub

import (
	"testing"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/hosttable"
	"kumo/internal/cluster/strategy/leader"
)

// FuzzMessages sends arbitrary data to a leader and to another node.
func FuzzMessages(f *testing.F) {
	w := varint.Writer{byte(leader.Question)}
	w.Uint(1)
	w.Uint(1)
	w.Byte('c') // a claim
	w.String("example.com")
	w.Uint(0)
	w.String("")
	w.String("")
	f.Add([]byte(w))
	f.Add([]byte{byte(leader.Answer), 1, 2, 'y', 1, 'a', 0, 0, 0})
	f.Add([]byte{byte(leader.Answer), 1, 2, 'l', 0, 0, 0, 3, 1, 'a', 0})
	f.Add([]byte{'n', 200, 2, 3, 'b', '~', '1'})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newCluster("a~1", "b~1")
		c.Settle()
		for _, s := range c.Nodes {
			s.Step(c.Now, []strategy.Event{strategy.Message{From: "b~1", Data: data}}, nil)
			s.Step(c.Now, []strategy.Event{strategy.Message{From: "a~1", Data: data}}, nil)
			s.View().Owner("example.com")
		}
	})
}

// FuzzLog loads arbitrary log data.
func FuzzLog(f *testing.F) {
	c := newCluster("a~1")
	c.Settle()
	c.RequestOwners("a~1", "example.com", "example.org")
	c.Settle()
	for _, e := range c.Log {
		f.Add(e)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entry := func(f func(uint64, []byte) error) error { return f(1, data) }
		_ = central.ReadTable(hosttable.Key{}, nil, entry, func(central.Host) bool { return true })
	})
}
