package netlab

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRoutesByAddress has one host with many addresses. The delay of each from another host is that of its route.
func TestRoutesByAddress(t *testing.T) {
	l, a, b := pairOf(t)
	many, err := l.Host("many", 13)
	if err != nil {
		t.Fatal(err)
	}
	echo(t, many)
	near, mid, mute, last := many.Addrs[0], many.Addrs[1], many.Addrs[2], many.Addrs[12]
	group := netip.PrefixFrom(last, 31).Masked() // the last two
	var routes []Route
	for _, r := range [][]Route{Between(One(a.Addr()), One(mid), 60*time.Millisecond, 0),
		Between(One(a.Addr()), One(mute), 0, 1),
		Between(One(a.Addr()), group, 120*time.Millisecond, 0), Between(One(b.Addr()), One(mid), 30*time.Millisecond, 0)} {
		routes = append(routes, r...)
	}
	if err := l.SetRoutes(routes...); err != nil {
		t.Fatal(err)
	}
	want := func(h *Host, to netip.Addr, least, most time.Duration) {
		t.Helper()
		var took, again time.Duration
		for range 10 { // a loaded machine may be late, but not always
			began := time.Now()
			c := mustDial(t, h, "tcp4", to)
			took = time.Since(began)
			if again = mustPing(t, c); min(took, again) < least || max(took, again) <= most {
				break
			}
		}
		if min(took, again) < least || max(took, again) > most {
			t.Errorf("from %s to %v: connected in %v, there and back in %v, want %v to %v", h.Name, to, took, again, least, most)
		}
	}
	const slack = 25 * time.Millisecond
	want(a, near, 0, slack)
	want(a, mid, 60*time.Millisecond, 60*time.Millisecond+slack)
	want(a, last, 120*time.Millisecond, 120*time.Millisecond+slack)
	want(a, many.Addrs[11], 120*time.Millisecond, 120*time.Millisecond+slack)
	want(a, many.Addrs[10], 0, slack)
	want(b, mid, 30*time.Millisecond, 30*time.Millisecond+slack)
	want(b, mute, 0, slack)
	if _, err := dial(t, a, "tcp4", mute); !os.IsTimeout(err) {
		t.Errorf("what loses all packets: %v", err)
	}
	// A cut overrides routes, and they are unchanged after it; routes are removed one by one.
	if err := l.Cut([]*Host{a}, []*Host{many}); err != nil {
		t.Fatal(err)
	}
	if _, err := dial(t, a, "tcp4", mid); !os.IsTimeout(err) {
		t.Errorf("over a cut: %v", err)
	}
	if err := l.Heal(); err != nil {
		t.Fatal(err)
	}
	want(a, mid, 60*time.Millisecond, 60*time.Millisecond+slack)
	if err := l.SetRoutes(Between(One(a.Addr()), group, 0, 0)...); err != nil {
		t.Fatal(err)
	}
	want(a, last, 0, slack)
	want(a, mid, 60*time.Millisecond, 60*time.Millisecond+slack)
}

func TestPacketsStayInOrder(t *testing.T) {
	l, a, b := pairOf(t)
	if err := l.SetPath(a, b, Path{Delay: 5 * time.Millisecond, Jitter: 20 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	const n = 300
	in, out := inbox(t, b), mustDial(t, a, "udp4", b.Addr())
	buf := make([]byte, 10)
	const first = 1 << 31
	for tries := 0; ; tries++ { // the kernel queues few packets until it has resolved the address
		if _, err := out.Write(binary.BigEndian.AppendUint32(nil, first)); err != nil {
			t.Fatal(err)
		}
		in.SetReadDeadline(time.Now().Add(2 * time.Second))
		_, _, err := in.ReadFrom(buf)
		if err == nil {
			break
		}
		if tries == 10 {
			t.Fatalf("no packet comes: %v", err)
		}
	}
	for i := range uint32(n) {
		if _, err := out.Write(binary.BigEndian.AppendUint32(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	in.SetReadDeadline(time.Now().Add(10 * time.Second))
	for i := uint32(0); i < n; i++ {
		if _, _, err := in.ReadFrom(buf); err != nil {
			t.Fatalf("after %d packets: %v", i, err)
		}
		if binary.BigEndian.Uint32(buf) == first { // one of those that were late
			i--
			continue
		}
		if got := binary.BigEndian.Uint32(buf); got != i {
			t.Fatalf("packet %d comes after %d others", got, i)
		}
	}
	if err := l.Close(); err != nil { // received packets are counted on Close
		t.Fatal(err)
	}
	if got := l.Traffic(); got.Passed < n || got.Lost+got.Dropped > 0 || got.Busy <= 0 {
		t.Errorf("%+v", got)
	}
}

// inbox receives packets on port 7 of a host.
func inbox(t testing.TB, h *Host) (c net.PacketConn) {
	t.Helper()
	if err := h.Do(func() (err error) { c, err = net.ListenPacket("udp4", ":7"); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	raw, err := c.(*net.UDPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE,
			16<<20)
	}); err != nil {
		t.Fatal(err)
	}
	return c
}

// BenchmarkProxy sends packets of a kilobyte from seven hosts to as many addresses of another, at a steady rate and
// with a round trip delay. It reports the proxy's share of a processor, and how late packets arrive.
func BenchmarkProxy(b *testing.B) {
	for _, rate := range []int{2000, 5000, 10_000} {
		b.Run(fmt.Sprint(rate), func(b *testing.B) { benchProxy(b, rate) })
	}
}

func benchProxy(b *testing.B, rate int) {
	const senders, delay = 7, 50 * time.Millisecond
	l := ForTest(b, 1)
	web, err := l.Host("web", senders)
	if err != nil {
		b.Fatal(err)
	}
	in := inbox(b, web)
	var outs []net.Conn
	for i := range senders {
		h := l.Add(b, fmt.Sprint("n", i))
		if err := l.SetRoutes(Route{One(h.Addr()), One(web.Addrs[i]), Path{Delay: delay}}); err != nil {
			b.Fatal(err)
		}
		var out net.Conn
		if err := h.Do(func() (err error) {
			out, err = net.Dial("udp4", netip.AddrPortFrom(web.Addrs[i], 7).String())
			return err
		}); err != nil {
			b.Fatal(err)
		}
		defer out.Close()
		outs = append(outs, out)
	}
	before, began := l.Traffic(), time.Now()
	var late time.Duration
	came := 0
	var reading sync.WaitGroup
	reading.Go(func() {
		buf := make([]byte, 1<<11)
		for range b.N {
			in.SetReadDeadline(time.Now().Add(time.Second))
			if _, _, err := in.ReadFrom(buf); err != nil {
				return
			}
			late += time.Since(began) - time.Duration(binary.BigEndian.Uint64(buf)) - delay
			came++
		}
	})
	packet := make([]byte, 1000)
	b.ResetTimer()
	for i := range b.N {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		binary.BigEndian.PutUint64(packet, uint64(time.Since(began)))
		if _, err := outs[i%senders].Write(packet); err != nil {
			b.Fatal(err)
		}
	}
	reading.Wait()
	took := time.Since(began)
	done := l.Traffic().Sub(before)
	b.ReportMetric(100*done.Busy.Seconds()/took.Seconds(), "%cpu")
	b.ReportMetric(float64(done.Busy.Nanoseconds())/float64(max(1, done.Passed)), "cpu-ns/packet")
	b.ReportMetric(float64(late.Microseconds())/float64(max(1, came)), "late-µs")
	b.ReportMetric(float64(b.N-came), "missing")
	b.ReportMetric(float64(done.Dropped), "dropped")
}
