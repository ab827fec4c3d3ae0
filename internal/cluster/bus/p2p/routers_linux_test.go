package p2p

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/secret"
	"kumo/internal/cluster/bus/bustest"
	"kumo/internal/cluster/strategy"
	"kumo/internal/lab/netlab"
	"kumo/internal/lab/testmain"
)

// A home is a node in a process of its own, on a host of a lab or on this one.
type home struct {
	Contact
	process *os.Process
	in      io.WriteCloser
	lines   chan string
	stats   Stats
}

// startOn starts a node on a host of a lab.
func startOn(t *testing.T, h *netlab.Host, s processSettings) *home {
	t.Helper()
	s.Name = h.Name
	if s.Listen == nil {
		s.Listen = []string{"0.0.0.0:4001"}
	}
	return startNode(t, s, func(cmd *exec.Cmd) error { return h.Do(cmd.Start) })
}

func startNode(t *testing.T, s processSettings, start func(*exec.Cmd) error) *home {
	t.Helper()
	if s.Dir == "" {
		s.Dir = t.TempDir()
	}
	settings, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), processVar+"="+string(settings))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := start(cmd); err != nil {
		t.Fatal(err)
	}
	n := &home{process: cmd.Process, in: in, lines: make(chan string, 10_000)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			n.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		in.Close()
		<-read
		_ = cmd.Wait() // some were killed
	})
	n.hear(t, "open", &n.Contact)
	return n
}

// hear waits for a line, and skips others.
func (n *home) hear(t *testing.T, what string, v any) {
	t.Helper()
	for late := time.After(patience); ; {
		select {
		case line := <-n.lines:
			if verb, rest, _ := strings.Cut(line, " "); verb == what {
				if err := json.Unmarshal([]byte(rest), v); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				return
			}
		case <-late:
			t.Fatalf("%s never says %q", n.Node, what)
		}
	}
}

func (n *home) do(format string, args ...any) { fmt.Fprintf(n.in, format+"\n", args...) }

func (n *home) ask(t *testing.T) Stats {
	t.Helper()
	n.do("stats")
	n.hear(t, "stats", &n.stats)
	return n.stats
}

// dial connects a node to another by the address that a user would give.
func (n *home) dial(t *testing.T, address string) {
	t.Helper()
	n.do("dial %s", address)
	var said []any
	if n.hear(t, "dialled", &said); said[1] != "<nil>" {
		t.Fatal(said...)
	}
}

// Two nodes behind home routers reach each other through the relay of a third node that others can reach, whose address
// is all they are given; and then without it, if the routers allow it.
func TestThroughRouters(t *testing.T) {
	testmain.Slow(t)
	for name, c := range map[string]struct {
		ports  string
		direct bool
	}{"ports that stay": {"", true}, "random ports": {netlab.RandomPorts, false}} {
		t.Run(name, func(t *testing.T) { throughRouters(t, c.ports, c.direct) })
	}
}

func throughRouters(t *testing.T, ports string, direct bool) {
	lab := netlab.ForTest(t, 1)
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("SKIPPED: no nft:", err)
	}
	s := secret.New()
	public := lab.Add(t, "public")
	also(t, public, "203.0.113.1/24")
	var nodes []*home
	for i, name := range []string{"a", "b"} {
		router := lab.Add(t, "r"+name)
		also(t, router, fmt.Sprintf("203.0.113.%d/24", 11+i))
		h, err := lab.Behind(router, name, ports)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, startOn(t, h, processSettings{Secret: s.Text(), Reach: ReachPrivate}))
	}
	relay := startOn(t, public, processSettings{Secret: s.Text(), Reach: ReachPublic})
	a, b := nodes[0], nodes[1]
	for _, n := range nodes {
		n.dial(t, "203.0.113.1:4001")
	}
	began := time.Now()
	var self Contact
	until(t, "a has an address by relay", func() bool {
		a.do("self")
		a.hear(t, "self", &self)
		return strings.Contains(strings.Join(self.Addrs, " "), "/p2p-circuit")
	})
	t.Logf("a relay after %v: %v", time.Since(began), self.Addrs)
	told, err := json.Marshal(self)
	if err != nil {
		t.Fatal(err)
	}
	b.do("learn %s", told)
	began = time.Now()
	b.do("send %s hello", a.Node)
	var got []string
	if a.hear(t, "got", &got); strategy.Node(got[0]) != b.Node || got[1] != "hello" {
		t.Fatalf("a got %q", got)
	}
	t.Logf("the first message after %v; %+v", time.Since(began), b.ask(t))
	if direct {
		until(t, "there is a direct connection", func() bool { return a.ask(t).Relayed == 0 && b.ask(t).Relayed == 0 })
		t.Logf("direct after %v", time.Since(began))
	} else if s := b.ask(t); s.Relayed != 1 {
		t.Errorf("through random ports: %+v", s)
	}
	a.do("send %s and back", b.Node)
	if b.hear(t, "got", &got); got[1] != "and back" {
		t.Fatalf("b got %q", got)
	}
	for _, n := range append(nodes, relay) {
		if s := n.ask(t); s.Peers != 2 || s.Broken+s.Unreachable+s.Overflow+s.Garbage > 0 {
			t.Errorf("%s: %+v", n.Node, s)
		}
	}
	if direct {
		relay.in.Close()
		var lost strategy.Node
		if b.hear(t, "lost", &lost); lost != relay.Node {
			t.Errorf("%s is lost to b", lost)
		}
		b.do("send %s without the relay", a.Node)
		if a.hear(t, "got", &got); got[1] != "without the relay" {
			t.Fatalf("a got %q", got)
		}
	}
}

func also(t *testing.T, h *netlab.Host, addr string) {
	t.Helper()
	if err := h.AddAddress(netip.MustParsePrefix(addr)); err != nil {
		t.Fatal(err)
	}
}

// Nodes in one network find each other without an address; they ignore nodes of other clusters.
func TestLAN(t *testing.T) {
	t.Parallel()
	lab := netlab.ForTest(t, 1)
	s, other := secret.New(), secret.New()
	a := startOn(t, lab.Add(t, "a"), processSettings{Secret: s.Text(), LAN: true})
	stranger := startOn(t, lab.Add(t, "c"), processSettings{Secret: other.Text(), LAN: true})
	b := startOn(t, lab.Add(t, "b"), processSettings{Secret: s.Text(), LAN: true})
	var reached strategy.Node
	if a.hear(t, "reached", &reached); reached != b.Node {
		t.Errorf("a has reached %s", reached)
	}
	if b.hear(t, "reached", &reached); reached != a.Node {
		t.Errorf("b has reached %s", reached)
	}
	if s := stranger.ask(t); s.Peers != 0 || s.Refused != 0 {
		t.Errorf("%+v", s)
	}
}

// Two distant nodes start at the same moment: each one's first packet is in transit when the other's is sent.
func TestFarNodesDialAtOnce(t *testing.T) {
	t.Parallel()
	for name, listen := range map[string]string{"tcp": "/ip4/0.0.0.0/tcp/4001", "quic": "/ip4/0.0.0.0/udp/4001/quic-v1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lab := netlab.ForTest(t, 1)
			hosts, s := []*netlab.Host{lab.Add(t, "a"), lab.Add(t, "b")}, secret.New()
			far := netlab.Path{Delay: 50 * time.Millisecond}
			if err := lab.SetPaths(hosts, [][]netlab.Path{{{}, far}, {far, {}}}); err != nil {
				t.Fatal(err)
			}
			settings := processSettings{Secret: s.Text(), Listen: []string{listen}}
			nodes := []*home{startOn(t, hosts[0], settings), startOn(t, hosts[1], settings)}
			for i, n := range nodes {
				told, err := json.Marshal(nodes[1-i].Contact)
				if err != nil {
					t.Fatal(err)
				}
				n.do("learn %s", told)
				n.ask(t)
			}
			for i, n := range nodes {
				n.do("send %s hello", nodes[1-i].Node)
			}
			for i, n := range nodes {
				var got []string
				if n.hear(t, "got", &got); strategy.Node(got[0]) != nodes[1-i].Node {
					t.Errorf("%s hears %q", n.Node, got)
				}
				if s := n.ask(t); s.Peers != 1 || s.Unreachable+s.Refused > 0 {
					t.Errorf("%s: %+v", n.Node, s)
				}
			}
		})
	}
}

// A node whose process is killed is reported as lost; when restarted, it has the same identity, and knows nodes to
// dial.
func TestKilledAndBack(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	cfg, reached, lost := told()
	cfg.Secret = secret.New()
	m := open(t, cfg)
	settings := processSettings{Name: "killed", Secret: cfg.Secret.Text(), Dir: t.TempDir(),
		Listen: bustest.Addresses(t, 1)}
	n := startNode(t, settings, (*exec.Cmd).Start)
	n.dial(t, m.Addrs()[0])
	wait(t, reached, "the node")
	until(t, "it has written whom it knows", func() bool {
		data, _ := os.ReadFile(filepath.Join(settings.Dir, bookFile))
		return strings.Contains(string(data), string(m.Node()))
	})
	if err := n.process.Kill(); err != nil {
		t.Fatal(err)
	}
	if node := wait(t, lost, "the loss"); node != n.Node {
		t.Errorf("%s is lost", node)
	}
	again := startNode(t, settings, (*exec.Cmd).Start)
	if again.Node != n.Node {
		t.Errorf("%s came back as %s", n.Node, again.Node)
	}
	got := receive(t, m)
	until(t, "it says something", func() bool {
		again.do("send %s I am back", m.Node())
		return len(got) > 0
	})
	if said := <-got; said != string(n.Node)+" I am back" {
		t.Errorf("it says %q", said)
	}
	wait(t, reached, "the node again")
	say(t, m, n.Node, "welcome", forward(t, again, m.Node()))
}

// forward returns what a process has received, as receive does.
func forward(t *testing.T, n *home, from strategy.Node) chan string {
	got := make(chan string, 1)
	go func() {
		for line := range n.lines {
			if strings.HasPrefix(line, "got ") {
				got <- string(from) + " welcome"
				return
			}
		}
	}()
	return got
}
