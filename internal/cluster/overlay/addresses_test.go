package overlay_test

import (
	"slices"
	"testing"
	"time"

	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/overlay/overlaytest"
)

// TestAddressesThatComeLateAreTold has two nodes that reach each other only through a relay. A third node, which both
// reach, learns this some seconds after it has reported them to each other.
func TestAddressesThatComeLateAreTold(t *testing.T) {
	w := overlaytest.New(9)
	w.Reaches = func(from string, to overlay.Contact) bool {
		return from == "public" || to.Node == "public" || slices.Contains(to.Addrs, "relay")
	}
	w.Start("public")
	a, b := w.Start("a", "public"), w.Start("b", "public")
	b.Addrs = []string{"home b"} // those of a are unknown
	w.Run(15 * time.Second)
	if a.Table["b"] || b.Table["a"] {
		t.Fatal("they know each other without a relay")
	}
	a.Addrs, b.Addrs = []string{"relay"}, []string{"relay", "home b"}
	w.Run(12 * time.Second)
	if !a.Table["b"] || !b.Table["a"] {
		t.Errorf("%v after they have a relay a knows %v, and b %v", 12*time.Second, a.Table, b.Table)
	}
}
