package nodes

import (
	"errors"
	"testing"
)

// A routing is a router that allows everything, or nothing.
type routing bool

func (r routing) Ours(string) bool { return true }
func (r routing) May(string) bool  { return bool(r) }

type lateness bool

func (l lateness) Late() bool { return bool(l) }

func TestNothingIsAskedForWhileTheLogIsLate(t *testing.T) {
	for _, c := range []struct{ may, late, want bool }{{true, false, true}, {true, true, false}, {false, false, false},
		{false, true, false}} {
		p := journalLagGuard{routing(c.may), lateness(c.late)}
		if got := p.May("example.com"); got != c.want || !p.Ours("example.com") {
			t.Errorf("may %v, late %v: %v", c.may, c.late, got)
		}
	}
}

// A silent crawl makes no commits.
type silent struct{}

func (silent) CheckAlive() error { return errors.New("journal: no progress for 3m0s") }
func (silent) CheckLoops() error { return nil }

// A node that waits for the cluster's servers makes no commits, and is alive.
func TestAliveWhileTheLogIsLate(t *testing.T) {
	if err := checkCrawl(lateness(true), silent{}); err != nil {
		t.Error(err)
	}
	if checkCrawl(lateness(false), silent{}) == nil {
		t.Error("the journal is stuck, and the node alive")
	}
}
