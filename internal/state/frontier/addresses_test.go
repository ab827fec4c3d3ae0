package frontier

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

func TestHostsAtAnAddressTakeTurns(t *testing.T) {
	addr, now := netip.MustParseAddr("192.0.2.1"), time.Now()
	a := newAddresses(time.Second, false)
	a.set(time.Second, 2) // turns are two seconds apart
	hosts := make([]addressTurn, 3)
	if later := a.reserve(&hosts[0], "h0", addr, now); !later.IsZero() {
		t.Errorf("a host alone at its address waits until %v", later)
	}
	for i := 1; i < 3; i++ {
		later := a.reserve(&hosts[i], fmt.Sprint("h", i), addr, now)
		if !later.Equal(now.Add(time.Duration(2*i) * time.Second)) {
			t.Errorf("host %d has its turn after %v", i, later.Sub(now))
		}
	}
	if c := a.longestQueue(now); c.Addr != addr || c.Hosts != 2 || c.Wait() != 4*time.Second {
		t.Errorf("%+v", c)
	}
	now = now.Add(2 * time.Second)
	if later := a.reserve(&hosts[1], "h1", addr, now); !later.IsZero() {
		t.Errorf("a host's own turn is after %v", later.Sub(now))
	}
	for i := range hosts {
		a.leave(&hosts[i], now)
	}
	if a.sweep(now.Add(time.Minute)); len(a.byAddr) != 0 {
		t.Errorf("%d addresses without hosts are kept", len(a.byAddr))
	}
}
