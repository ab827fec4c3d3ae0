package nodes

import "testing"

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
