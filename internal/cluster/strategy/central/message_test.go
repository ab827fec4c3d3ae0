package central

import (
	"math"
	"reflect"
	"testing"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central/hosttable"
	"kumo/internal/cluster/strategy/leader"
)

func TestMessages(t *testing.T) {
	want := []item{{kind: itemRequest, host: "example.com"}, {kind: itemClaim, host: "", number: 1 << 60, text: "192.0.2"},
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

func TestLoads(t *testing.T) {
	e := strategy.Load{Node: "a~1", Hosts: 7, Pending: 1 << 33, Fetching: 64, Rate: 0.25, Busy: 1, Paused: true, Pages: 12,
		Enqueued: 99, Bytes: 1 << 50, CPU: time.Hour,
		Machine: strategy.Machine{Cores: 0.5, GHz: 2.4, MemoryGB: 4, NetworkMbps: 18, DiskMbps: 1.5}}
	var w varint.Writer
	appendLoad(&w, &e)
	if got, ok := parseLoad("a~1", string(w)); !ok || got != e {
		t.Errorf("%+v, %v", got, ok)
	}
	e.Machine.GHz = math.NaN()
	w = nil
	appendLoad(&w, &e)
	for n := range len(w) + 1 {
		if got, ok := parseLoad("a~1", string(w[:n])); ok {
			t.Errorf("%d of %d bytes are %+v", n, len(w), got)
		}
	}
}

// newNobody returns a node that assigns no hosts.
func newNobody(n strategy.Node) *Strategy {
	return New(Config{Self: n}, func(*Leader) Policy { return nobodys{} }, nil)
}

type nobodys struct{}

func (nobodys) Records() leader.State                     { return nil }
func (nobodys) Elected()                                  {}
func (nobodys) Deposed()                                  {}
func (nobodys) OwnerRequested(strategy.Node, string, int) {}
func (nobodys) Probed(ProbeReport)                        {}
func (nobodys) HolderFound(strategy.Node, string)         {}
func (nobodys) MoveCompleted(string, hosttable.Row)       {}
func (nobodys) LoadReported(strategy.Load)                {}
func (nobodys) Offered(Offer)                             {}
func (nobodys) Withdrawn(string)                          {}
func (nobodys) Advance()                                  {}
func (nobodys) NextDue() time.Time                        { return time.Time{} }
