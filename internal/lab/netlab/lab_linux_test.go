package netlab

import (
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pairOf returns a lab with two hosts.
func pairOf(t *testing.T) (l *Lab, a, b *Host) {
	t.Helper()
	l = ForTest(t, 1)
	return l, l.Add(t, "a"), l.Add(t, "b")
}

// echo returns all received data, over TCP and, packet by packet, over UDP, on port 7 of a host.
func echo(t *testing.T, h *Host) {
	t.Helper()
	var tcp net.Listener
	var udp net.PacketConn
	err := h.Do(func() (err error) {
		if tcp, err = net.Listen("tcp4", ":7"); err == nil {
			udp, err = net.ListenPacket("udp4", ":7")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close(); udp.Close() })
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	go func() {
		buf := make([]byte, 2000)
		for {
			n, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(buf[:n], from)
		}
	}()
}

func dial(t *testing.T, h *Host, network string, to netip.Addr) (c net.Conn, err error) {
	t.Helper()
	err = h.Do(func() (err error) {
		c, err = net.DialTimeout(network, netip.AddrPortFrom(to, 7).String(), time.Second)
		return err
	})
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func mustDial(t *testing.T, h *Host, network string, to netip.Addr) net.Conn {
	t.Helper()
	c, err := dial(t, h, network, to)
	for tries := 0; tries < 10 && os.IsTimeout(err); tries++ { // on a busy machine
		c, err = dial(t, h, network, to)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ping returns the round trip time of a byte.
func ping(c net.Conn, most time.Duration) (time.Duration, error) {
	began := time.Now()
	c.SetDeadline(began.Add(most))
	if _, err := c.Write([]byte{1}); err != nil {
		return 0, err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return time.Since(began), err
}

// fastest returns the least result of up to five calls of f: single calls may wait for the processor. It stops once a
// result is short enough.
func fastest(f func() time.Duration, enough time.Duration) time.Duration {
	least := f()
	for i := 1; i < 5 && least > enough; i++ {
		least = min(least, f())
	}
	return least
}

func mustPing(t *testing.T, c net.Conn) time.Duration {
	t.Helper()
	d, err := ping(c, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestHostsReachEachOther(t *testing.T) {
	l, a, b := pairOf(t)
	many, err := l.Host("many", 3)
	if err != nil {
		t.Fatal(err)
	}
	echo(t, b)
	echo(t, many)
	for _, addr := range append(many.Addrs, b.Addr()) {
		c := mustDial(t, a, "tcp4", addr)
		mustPing(t, c)
		if from := c.LocalAddr().(*net.TCPAddr).AddrPort().Addr(); from != a.Addr() {
			t.Errorf("%v reaches %v from %v", a.Addr(), addr, from)
		}
	}
}

func TestCutAndHeal(t *testing.T) {
	l, a, b := pairOf(t)
	c := l.Add(t, "c")
	for _, h := range []*Host{a, b, c} {
		echo(t, h)
	}
	open, past := mustDial(t, a, "tcp4", b.Addr()), mustDial(t, a, "tcp4", c.Addr())
	mustPing(t, open)
	if err := l.Cut([]*Host{b}, []*Host{a}); err != nil {
		t.Fatal(err)
	}
	if _, err := ping(open, 300*time.Millisecond); !os.IsTimeout(err) {
		t.Errorf("over a cut the answer is %v, not silence", err)
	}
	if _, err := dial(t, b, "tcp4", a.Addr()); !os.IsTimeout(err) {
		t.Errorf("over a cut the other way: %v", err)
	}
	mustPing(t, past)
	mustPing(t, mustDial(t, b, "tcp4", c.Addr()))
	if err := l.Heal(); err != nil {
		t.Fatal(err)
	}
	open.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.ReadFull(open, make([]byte, 1)); err != nil {
		t.Errorf("what was on its way when the network was cut has not come after all: %v", err)
	}
	mustPing(t, open)
	mustPing(t, mustDial(t, b, "tcp4", a.Addr()))
}

func TestCutOneWay(t *testing.T) {
	l, a, b := pairOf(t)
	echo(t, a)
	got := make(chan netip.Addr, 10)
	var inbox net.PacketConn
	if err := b.Do(func() (err error) { inbox, err = net.ListenPacket("udp4", ":7"); return err }); err != nil {
		t.Fatal(err)
	}
	defer inbox.Close()
	go func() {
		buf := make([]byte, 10)
		for {
			_, from, err := inbox.ReadFrom(buf)
			if err != nil {
				return
			}
			got <- from.(*net.UDPAddr).AddrPort().Addr()
		}
	}()
	if err := l.CutOneWay([]*Host{b}, []*Host{a}); err != nil {
		t.Fatal(err)
	}
	if _, err := ping(mustDial(t, b, "udp4", a.Addr()), 300*time.Millisecond); !os.IsTimeout(err) {
		t.Errorf("what is cut: %v", err)
	}
	_, _ = ping(mustDial(t, a, "udp4", b.Addr()), time.Millisecond)
	select {
	case from := <-got:
		if from != a.Addr() {
			t.Errorf("a packet from %v", from)
		}
	case <-time.After(30 * time.Second):
		t.Error("the other way is cut, too")
	}
}

func TestDelay(t *testing.T) {
	l, a, b := pairOf(t)
	echo(t, b)
	direct := mustDial(t, a, "tcp4", b.Addr())
	mustPing(t, direct)
	near := mustPing(t, direct)
	there := Path{Delay: 80 * time.Millisecond}
	back := Path{Delay: 20 * time.Millisecond, Jitter: 10 * time.Millisecond}
	if err := l.SetPaths([]*Host{a, b}, [][]Path{{{}, there}, {back, {}}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{direct, mustDial(t, a, "tcp4", b.Addr()), mustDial(t, a, "udp4", b.Addr())} {
		least := fastest(func() time.Duration { return mustPing(t, c) }, 500*time.Millisecond)
		if least < 100*time.Millisecond || least > 500*time.Millisecond {
			t.Errorf("there and back in %v, want 100 to 110 ms (%v without delay)", least, near)
		}
	}
	// Large writes: packets that the kernel has joined, and whose checksums it has yet to compute, arrive unchanged.
	much := make([]byte, 1<<20)
	for i := range much {
		much[i] = byte(i * i >> 7)
	}
	go func() { _, _ = direct.Write(much) }()
	// with little processor time, the kernel drops packets and sends them again
	direct.SetReadDeadline(time.Now().Add(time.Minute))
	came := make([]byte, len(much))
	if _, err := io.ReadFull(direct, came); err != nil || string(came) != string(much) {
		t.Errorf("1 MB through the proxy: %v, equal %v", err, string(came) == string(much))
	}
	if err := l.SetPath(a, b, Path{}); err != nil {
		t.Fatal(err)
	}
	// with both delays in place, no ping is as fast
	half := fastest(func() time.Duration { return mustPing(t, direct) }, 80*time.Millisecond)
	if half > 80*time.Millisecond {
		t.Errorf("%v after one delay of 80 ms was taken back", half)
	}
}

func TestLoss(t *testing.T) {
	l, a, b := pairOf(t)
	echo(t, b)
	if err := l.SetPath(a, b, Path{Loss: 0.3}); err != nil {
		t.Fatal(err)
	}
	udp := mustDial(t, a, "udp4", b.Addr())
	came, late := 0, time.Now().Add(time.Minute)
	for range 200 { // each packet comes back, or is counted as lost
		before := l.Traffic().Lost
		if _, err := udp.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		for l.Traffic().Lost == before && time.Now().Before(late) {
			udp.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			if _, err := udp.Read(make([]byte, 1)); err == nil {
				came++
				break
			}
		}
	}
	if lost := l.Traffic().Lost; came < 100 || came > 180 || lost < 20 {
		t.Errorf("of 200 packets %d came back, %d were lost; want about 140 and 60", came, lost)
	}
	tcp := mustDial(t, a, "tcp4", b.Addr())
	for range 6 {
		mustPing(t, tcp)
	}
}

func TestBandwidth(t *testing.T) {
	_, a, b := pairOf(t)
	echo(t, b)
	if err := a.Bandwidth(8_000_000); err != nil {
		t.Fatal(err)
	}
	c := mustDial(t, a, "tcp4", b.Addr())
	megabyte := func() time.Duration {
		const size = 1 << 20
		began := time.Now()
		go func() { _, _ = c.Write(make([]byte, size)) }()
		c.SetReadDeadline(began.Add(time.Minute))
		if _, err := io.ReadFull(c, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	const least = 700 * time.Millisecond
	if took := fastest(megabyte, 4*time.Second); took < least || took > 4*time.Second {
		t.Errorf("a megabyte at a megabyte a second took %v", took)
	}
	if err := a.Bandwidth(0); err != nil {
		t.Fatal(err)
	}
	if took := fastest(megabyte, least); took > least { // with the limit, none is as fast
		t.Errorf("without a limit it took %v", took)
	}
}

func TestProcessesEndWithTheLab(t *testing.T) {
	l, a, _ := pairOf(t)
	p, err := a.Start(exec.Command("sh", "-c", "sleep 1000 & exec sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	if len(pids(a.space)) == 0 {
		t.Fatal("nothing runs there")
	}
	if len(living(t, p.Pid())) == 0 || p.Code() != -1 || p.Signal(syscall.SIGSTOP) != nil {
		t.Error("it does not run")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(5 * time.Second); err == nil {
		t.Error("it has ended by itself")
	}
	if left := living(t, p.Pid()); len(left) > 0 {
		t.Errorf("some of its group are left: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(namespaceDir, l.prefix+"*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// living returns the processes of a group that have not ended.
func living(t *testing.T, group int) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		data, _ := os.ReadFile(path) // it may have ended
		_, rest, _ := strings.Cut(string(data), ") ")
		if f := strings.Fields(rest); len(f) > 2 && f[2] == strconv.Itoa(group) && f[0] != "Z" && f[0] != "X" {
			found = append(found, path)
		}
	}
	return found
}

// TestLeftoversAreSwept has the namespaces of an ended and of a living process, and one that belongs to no lab.
func TestLeftoversAreSwept(t *testing.T) {
	ForTest(t, 1) // or skip
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	began, err := startTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(os.Getpid())
	dead, reused, alive, strange := namePrefix+strconv.Itoa(ended.Process.Pid)+"-5-1-x", namePrefix+pid+"-5-1-x",
		namePrefix+pid+"-"+began+"-999-x", "kumotest-"+pid
	for _, space := range []string{dead, reused, alive, strange} {
		if err := ip("netns", "add", space); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ip("netns", "del", space) }() // the cleanup has removed most of them
	}
	if err := removeStale(); err != nil {
		t.Fatal(err)
	}
	for space, want := range map[string]bool{dead: false, reused: false, alive: true, strange: true} {
		if _, err := os.Stat(filepath.Join(namespaceDir, space)); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", space, err == nil, want)
		}
	}
}
