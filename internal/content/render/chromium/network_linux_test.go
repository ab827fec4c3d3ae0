package chromium

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/content/render"
)

// TestNoNetwork: a browser that renders a hostile page reaches no server of this machine, by TCP or UDP, and sends no packet
// to another one, except that the kernel announces membership in a multicast group (IGMP). The test runs itself in a
// network of its own.
func TestNoNetwork(t *testing.T) {
	const inside = "KUMO_TEST_NETWORK"
	if os.Getenv(inside) == "" {
		long(t)
		if os.Geteuid() != 0 {
			t.Skip("SKIPPED: needs root")
		}
		newPool(t, nil) // skips without a browser
		for _, program := range []string{"unshare", "ip"} {
			if _, err := exec.LookPath(program); err != nil {
				t.Skip("SKIPPED: ", err)
			}
		}
		cmd := exec.Command("unshare", "-n", "sh", "-c", `ip link set lo up && ip link add out0 type veth peer name in0 &&
			ip link set out0 addrgenmode none && ip link set in0 addrgenmode none && ip addr add 10.9.9.1/24 dev out0 &&
			ip link set in0 up && ip link set out0 up && ip route add default via 10.9.9.2 &&
			ip neigh add 10.9.9.2 lladdr 02:00:00:00:00:01 dev out0 nud permanent && exec "$0" -test.run '^TestNoNetwork$' -test.v`, os.Args[0])
		cmd.Env = append(os.Environ(), inside+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	var accepted atomic.Int32
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			_ = c.Close()
		}
	}()
	go func() {
		for b := make([]byte, 2000); ; {
			if _, _, err := udp.ReadFrom(b); err != nil {
				return
			}
			accepted.Add(1)
		}
	}()
	page := `<link rel=dns-prefetch href="//OUT"><link rel=preconnect href="http://LOCAL"><link rel=preconnect href="http://OUT">
		<link rel=prefetch href="http://OUT/p"><form id=f method=post action="http://OUT/form"></form>
		<iframe src="http://OUT/frame"></iframe><iframe src="http://LOCAL/frame"></iframe><p>here<script>
		const tries = [() => navigator.serviceWorker.register('/sw.js'), () => new SharedWorker('/shared.js')]
		for (const at of ['OUT', 'LOCAL']) tries.push(() => new WebSocket('ws://' + at), () => new EventSource('http://' + at),
			() => fetch('http://' + at, {method: 'POST', body: 'x'}), () => navigator.sendBeacon('http://' + at, 'x'),
			() => open('http://' + at), () => new WebTransport('https://' + at), () => fetch('http://' + at))
		tries.push(() => { const c = new RTCPeerConnection({iceServers: [{urls: 'stun:10.7.7.7:3478'}, {urls: 'stun:UDP'},
			{urls: 'turn:TURN?transport=tcp', username: 'a', credential: 'b'}]})
			c.createDataChannel('x'); c.createOffer().then(o => c.setLocalDescription(o)) })
		tries.push(() => f.submit())
		let n = 0
		for (const one of tries) { try { Promise.resolve(one()).catch(() => {}); n++ } catch (e) {} }
		document.title = 'tried ' + n</script>`
	page = strings.NewReplacer("OUT", "10.7.7.7", "LOCAL", tcp.Addr().String(), "UDP", udp.LocalAddr().String(), "TURN",
		tcp.Addr().String()).Replace(page)
	probe, err := net.Dial("udp", "10.7.7.7:9")
	if err != nil {
		t.Fatal(err)
	}
	before := sent(t)
	if _, err := probe.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n := sent(t) - before; n != 1 {
		t.Fatalf("one packet counts as %d", n)
	}
	before = sent(t)
	b := newBrowser(t, func(c *Config) { c.Quiet = 3 * time.Second })
	w := &web{files: map[string]string{"x.test/": page, "x.test/shared.js": "fetch('http://10.7.7.7/')"}}
	r, err := b.Render(t.Context(), render.Job{URL: "http://x.test/", Answer: w.answer})
	if err != nil || !strings.HasPrefix(r.Title, "tried 1") || !w.wasAsked("GET 10.7.7.7/frame") {
		t.Fatalf("%v; requests %v", err, w.asked)
	}
	t.Logf("%s; %d web sockets, %d windows, %d blocked", r.Title, r.WebSockets, r.Windows, r.Blocked)
	b.Close()
	if n := sent(t) - before; n != 0 {
		t.Errorf("the browser sent %d packets to other machines", n)
	}
	if n := accepted.Load(); n != 0 {
		t.Errorf("the browser made %d connections to this machine", n)
	}
}

// sent returns the packets that have left the machine, without those to multicast groups.
func sent(t *testing.T) (n int) {
	t.Helper()
	_, line, ok := strings.Cut(string(read(t, "/proc/self/net/dev")), "out0:")
	f := strings.Fields(line)
	if !ok || len(f) < 10 {
		t.Fatal(line)
	}
	packets, err := strconv.Atoi(f[9])
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(read(t, "/proc/self/net/netstat"))) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "IpExt:" {
			continue
		}
		if names == nil {
			names = f
			continue
		}
		multicast, err := strconv.Atoi(f[slices.Index(names, "OutMcastPkts")])
		if err != nil {
			t.Fatal(err)
		}
		return packets - multicast
	}
	t.Fatal("netstat has no IpExt")
	return 0
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
