package fetch

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"kumo/internal/lab/testmain"
)

// TestALimitedReadGoesByTheMonotonicClock sets the wall clock while a connection with a limited bandwidth has a
// deadline. The deadline must not move.
func TestALimitedReadGoesByTheMonotonicClock(t *testing.T) {
	for _, leap := range []time.Duration{0, time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour} {
		here, there := net.Pipe()
		c := &Client{limit: rate.NewLimiter(rate.Inf, 1<<10)}
		w := c.newWire(&addressed{here})
		w.slot = &sockets{}
		now := time.Now()
		w.endReads(testmain.JumpClock(now.Add(time.Minute), leap))
		if err := w.wait(100); err != nil {
			t.Errorf("the clock leapt by %v: a read with a minute left ends: %v", leap, err)
		}
		w.endReads(testmain.JumpClock(now.Add(-time.Second), leap))
		if err := w.wait(100); err == nil {
			t.Errorf("the clock leapt by %v: a read that has no time left goes on", leap)
		}
		w.cancel()
		_, _ = here.Close(), there.Close()
	}
}

// An addressed is a connection with an address.
type addressed struct{ net.Conn }

func (addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// anyName has one address for each name.
type anyName struct{}

func (anyName) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.45.0.1")}, nil
}

// TestFoundGoesByTheMonotonicClock sets the wall clock back after a name was found: LastFound must still be before
// later times.
func TestFoundGoesByTheMonotonicClock(t *testing.T) {
	for _, leap := range []time.Duration{time.Hour, -24 * time.Hour} {
		now := time.Now()
		clock := now
		c, err := New(Config{Now: func() time.Time { return clock }, Resolver: anyName{}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.resolver.lookUpUncached(context.Background(), "a.test"); err != nil {
			t.Fatal(err)
		}
		clock = testmain.JumpClock(now.Add(time.Second), leap)
		if age := clock.Sub(c.LastFound()); age != time.Second {
			t.Errorf("the clock leapt by %v: a name was found %v ago", leap, age)
		}
		c.Close()
	}
}
