package p2p

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"kumo/internal/netlab"
	"kumo/internal/secret"
	"kumo/internal/strategy"
)

// A home is a node that is a process on a host of a lab.
type home struct {
	Contact
	in    io.WriteCloser
	lines chan string
	stats Stats
}

func startNode(t *testing.T, h *netlab.Host, s secret.Secret, reach Reach) *home {
	t.Helper()
	settings, err := json.Marshal(processSettings{Name: h.Name, Secret: s.Text(), Dir: t.TempDir(),
		Listen: []string{"0.0.0.0:4001"}, Reach: reach})
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
	n := &home{in: in, lines: make(chan string, 10_000)}
	p, err := h.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			n.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		in.Close()
		if err := p.Wait(patience); err != nil {
			t.Error(err)
		}
		<-read
	})
	n.hear(t, "open", &n.Contact)
	return n
}

// hear waits for a line, and lets others go.
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

// dial connects a node to another by the address that a person would give.
func (n *home) dial(t *testing.T, address string) {
	t.Helper()
	n.do("dial %s", address)
	var said []any
	if n.hear(t, "dialled", &said); said[1] != "<nil>" {
		t.Fatal(said...)
	}
}

// Two nodes behind home routers reach each other by the relay of a third that others can reach, whose address is all
// that they are told; and then without it, where the routers let them.
func TestThroughRouters(t *testing.T) {
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
		nodes = append(nodes, startNode(t, h, s, ReachPrivate))
	}
	relay := startNode(t, public, s, ReachPublic)
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
	if err := h.Also(netip.MustParsePrefix(addr)); err != nil {
		t.Fatal(err)
	}
}
