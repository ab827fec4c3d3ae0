package p2p

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"kumo/internal/base/secret"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/bustest"
	"kumo/internal/cluster/strategy"
)

// patience is how long a test waits for an expected event.
const patience = 30 * time.Second

func TestContract(t *testing.T) {
	t.Parallel()
	for name, listen := range map[string]string{"tcp": "/ip4/127.0.0.1/tcp/0", "quic": "/ip4/127.0.0.1/udp/0/quic-v1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := secret.New()
			var all []*Messenger
			bustest.RunMessenger(t, func(t *testing.T, name string) (bus.Messenger, strategy.Node) {
				m := open(t, Config{Name: name, Secret: s, Listen: []string{listen}})
				for _, o := range all {
					o.Learn(m.Self())
					m.Learn(o.Self())
				}
				all = append(all, m)
				return m, m.Node()
			})
		})
	}
}

// open opens a node that is closed when the test ends.
func open(t testing.TB, cfg Config) *Messenger {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Listen == nil {
		cfg.Listen = []string{"127.0.0.1:0"}
	}
	cfg.Name, cfg.Crawl = cmp.Or(cfg.Name, "node"), cmp.Or(cfg.Crawl, "test")
	cfg.Log = func(s string) {
		if t.Context().Err() == nil {
			t.Log(cfg.Name, s)
		}
	}
	m, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestDial(t *testing.T) {
	t.Parallel()
	s := secret.New()
	a := open(t, Config{Name: "a", Secret: s})
	at := a.Addrs()
	port := at[slices.IndexFunc(at, func(s string) bool { return strings.Contains(s, "/tcp/") })]
	port = strings.Split(port, "/")[4]
	quic := at[slices.IndexFunc(at, func(s string) bool { return strings.Contains(s, "/quic-v1") })]
	for name, address := range map[string]string{
		"host:port":             "127.0.0.1:" + port,
		"a name":                "localhost:" + port,
		"dns":                   "/dns4/localhost/tcp/" + port,
		"dns with the peer":     "/dns4/localhost/tcp/" + port + "/p2p/" + a.id.String(),
		"quic with the peer":    quic,
		"tcp without the peer":  "/ip4/127.0.0.1/tcp/" + port,
		"beside one that is no": "127.0.0.1:" + port + " 127.0.0.1:1",
	} {
		b := open(t, Config{Name: "b", Secret: s})
		nodes, err := b.Dial(t.Context(), strings.Fields(address)...)
		if err != nil || !slices.Equal(nodes, []strategy.Node{a.Node()}) {
			t.Errorf("%s: %s: %v, %v", name, address, nodes, err)
		}
		b.Close()
	}
	b := open(t, Config{Name: "b", Secret: s})
	own := b.Addrs()[0]
	udp := strings.TrimSuffix(quic, "/p2p/"+a.id.String())
	for _, address := range []string{"", "nowhere", "127.0.0.1:x", "/ip4/1", "127.0.0.1:1", own, udp} {
		if nodes, err := b.Dial(t.Context(), address); err == nil {
			t.Errorf("%q: %v", address, nodes)
		} else {
			t.Log(err)
		}
	}
}

// A node keeps its identity as long as it has its folder, and finds others again without being given an address.
func TestComesBack(t *testing.T) {
	t.Parallel()
	s, dir := secret.New(), t.TempDir()
	a := open(t, Config{Name: "a", Secret: s})
	b := open(t, Config{Name: "b", Secret: s, Dir: dir})
	dial(t, b, a)
	node := b.Node()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, Config{Name: "b", Secret: s, Dir: dir})
	if b.Node() != node || node.Name() != "b" {
		t.Errorf("%s came back as %s", node, b.Node())
	}
	known := b.Known()
	if len(known) != 1 || known[0].Node != a.Node() || len(known[0].Addrs) == 0 {
		t.Fatalf("it knows %v", known)
	}
	got := receive(t, a)
	say(t, b, a.Node(), "again", got)
	if info, err := os.Stat(filepath.Join(dir, keyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file is %v, %v", info.Mode(), err)
	}
	b.Close()
	for name, text := range map[string]string{"damaged": "{", "full of nonsense": `[{"node":"x","addrs":["y"]}]`} {
		if err := os.WriteFile(filepath.Join(dir, bookFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		b = open(t, Config{Name: "b", Secret: s, Dir: dir})
		if known := b.Known(); len(known) != 0 {
			t.Errorf("from a file that is %s it knows %v", name, known)
		}
		b.Close()
	}
	if err := os.WriteFile(filepath.Join(dir, keyFile), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Name: "b", Crawl: "test", Dir: dir, Secret: s}); err == nil {
		t.Error("a key that is none is taken")
	}
}

// dial connects two nodes.
func dial(t testing.TB, from, to *Messenger) {
	t.Helper()
	if _, err := from.Dial(t.Context(), to.Addrs()...); err != nil {
		t.Fatal(err)
	}
}

// receive returns a channel of the messages to a node, until the test ends.
func receive(t testing.TB, m *Messenger) chan string {
	got := make(chan string, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	var receiving sync.WaitGroup
	receiving.Go(func() {
		_ = m.Receive(ctx, func(from strategy.Node, data []byte) {
			select {
			case got <- string(from) + " " + string(data):
			default:
			}
		})
	})
	t.Cleanup(func() { cancel(); receiving.Wait() })
	return got
}

// say sends a message until it arrives.
func say(t testing.TB, from *Messenger, to strategy.Node, data string, got chan string) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for late := time.After(patience); ; {
		if err := from.Send(to, []byte(data)); err != nil {
			t.Fatal(err)
		}
		select {
		case m := <-got:
			if m == string(from.Node())+" "+data {
				return
			}
		case <-again.C:
		case <-late:
			t.Fatalf("%q never came; %+v", data, from.Stats())
		}
	}
}

// told collects the calls of Reached and Lost.
func told() (cfg Config, reached, lost chan strategy.Node) {
	reached, lost = make(chan strategy.Node, 100), make(chan strategy.Node, 100)
	return Config{Reached: func(n strategy.Node) { reached <- n }, Lost: func(n strategy.Node) { lost <- n }}, reached,
		lost
}

func wait[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
	}
	return v
}

// The other side ends, and comes back at the same address: both are reported, and messages arrive again.
func TestTheOtherSideIsLostAndComesBack(t *testing.T) {
	t.Parallel()
	s, dir := secret.New(), t.TempDir()
	cfg, reached, lost := told()
	cfg.Secret = s
	a := open(t, cfg)
	at := bustest.Addresses(t, 1)
	b := open(t, Config{Name: "b", Secret: s, Dir: dir, Listen: at})
	dial(t, a, b)
	if n := wait(t, reached, "the notice"); n != b.Node() {
		t.Errorf("%s is reached", n)
	}
	say(t, a, b.Node(), "one", receive(t, b))
	b.Close()
	if n := wait(t, lost, "the loss"); n != b.Node() {
		t.Errorf("%s is lost", n)
	}
	intoTheVoid(t, a, b.Node())
	wait(t, lost, "the notice that it cannot be reached")
	b = open(t, Config{Name: "b", Secret: s, Dir: dir, Listen: at})
	say(t, a, b.Node(), "two", receive(t, b))
	wait(t, reached, "the second notice")
	if s := a.Stats(); s.Peers != 1 {
		t.Errorf("%+v", s)
	}
}

// intoTheVoid sends to a node that has ended until that is noticed. Messages written to a connection whose end was not
// noticed yet are not counted, and a second connection that was being made when the node ended may come up after its
// end.
func intoTheVoid(t *testing.T, from *Messenger, to strategy.Node) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for late := time.After(patience); ; {
		if err := from.Send(to, []byte("into the void")); err != nil {
			t.Fatal(err)
		}
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("nothing was unreachable; %+v", from.Stats())
		}
		if s := from.Stats(); s.Unreachable+s.Broken > 0 {
			return
		}
	}
}

func TestWithoutASecretAllIsLoopback(t *testing.T) {
	t.Parallel()
	a := open(t, Config{Name: "a"})
	b := open(t, Config{Name: "b"})
	dial(t, a, b)
	if _, err := Open(Config{Name: "c", Crawl: "test", Dir: t.TempDir(), Listen: []string{":0"}}); err == nil {
		t.Error("it listens on all addresses")
	}
	if a.gater.InterceptAddrDial("", parsed([]string{"/ip4/192.0.2.1/tcp/1"})[0]) {
		t.Error("it dials other addresses")
	}
}

func TestBadConfigs(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no name":        {Crawl: "c", Dir: "d"},
		"a name of two":  {Name: "a b", Crawl: "c", Dir: "d"},
		"a name with ~":  {Name: "a~b", Crawl: "c", Dir: "d"},
		"a long name":    {Name: strings.Repeat("x", 65), Crawl: "c", Dir: "d"},
		"no crawl":       {Name: "a", Dir: "d"},
		"no address":     {Name: "a", Crawl: "c", Dir: "d", Listen: []string{"somewhere"}},
		"no ip":          {Name: "a", Crawl: "c", Dir: "d", Listen: []string{"localhost:1"}},
		"no multiaddr":   {Name: "a", Crawl: "c", Dir: "d", Listen: []string{"/ip4/x"}},
		"no secret":      {Name: "a", Crawl: "c", Dir: "d", Listen: []string{"0.0.0.0:0"}},
		"a port too big": {Name: "a", Crawl: "c", Dir: "d", Listen: []string{"127.0.0.1:65536"}},
	} {
		if err := cfg.check(); err == nil {
			t.Errorf("%s: %+v is taken", name, cfg)
		}
	}
}

func TestNodesAreTheirKeys(t *testing.T) {
	key, err := loadKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := Messenger{}
	if m.id, err = peer.IDFromPrivateKey(key); err != nil {
		t.Fatal(err)
	}
	node, err := nodeOf("weaver", m.id)
	if err != nil || node.Name() != "weaver" || bus.CheckNode(node) != nil || len(node) != len("weaver~")+52 {
		t.Fatalf("%s, %v", node, err)
	}
	if id, err := idOf(node); err != nil || id != m.id {
		t.Errorf("%s, %v", id, err)
	}
	for _, node := range []strategy.Node{"", "weaver", "weaver~", "weaver~1", node + "x", "weaver~" +
		strategy.Node(strings.Repeat("1", 52))} {
		if id, err := idOf(node); err == nil {
			t.Errorf("%s is %s", node, id)
		}
	}
}

// A closed messenger leaves nothing behind: TestMain looks for goroutines.
func TestCloseEndsAll(t *testing.T) {
	t.Parallel()
	s := secret.New()
	a, b := open(t, Config{Name: "a", Secret: s}), open(t, Config{Name: "b", Secret: s, LAN: true})
	dial(t, a, b)
	for range 100 {
		if err := a.Send(b.Node(), make([]byte, 100_000)); err != nil { // without a receiver
			t.Fatal(err)
		}
	}
	for _, m := range []*Messenger{a, b, a} {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := a.Dial(t.Context(), "127.0.0.1:1"); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("a closed messenger dials: %v", err)
	}
	if err := a.Send(b.Node(), nil); !errors.Is(err, bus.ErrClosed) {
		t.Error(err)
	}
}

// A guest gets answers, writes nothing, and is stored by no node.
func TestGuest(t *testing.T) {
	t.Parallel()
	s := secret.New()
	a := open(t, Config{Name: "a", Secret: s})
	b := open(t, Config{Name: "b", Secret: s})
	g, err := Open(Config{Name: Guest, Crawl: "test", Secret: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	for _, m := range []*Messenger{b, g} {
		if _, err := m.Dial(t.Context(), a.Addrs()...); err != nil {
			t.Fatal(err)
		}
	}
	heard := make(chan string, 1)
	go a.Receive(t.Context(), func(from strategy.Node, data []byte) { a.Send(from, append([]byte("re: "), data...)) })
	go g.Receive(t.Context(), func(_ strategy.Node, data []byte) { heard <- string(data) })
	if err := g.Send(a.Node(), []byte("how do you do")); err != nil {
		t.Fatal(err)
	}
	if text := <-heard; text != "re: how do you do" {
		t.Errorf("it hears %q", text)
	}
	until(t, "a keeps b", func() bool { // the dialer may know that before
		if err := a.saveBook(); err != nil {
			t.Fatal(err)
		}
		return len(a.Known()) > 0
	})
	if all := a.Known(); len(all) != 1 || all[0].Node != b.Node() {
		t.Errorf("%v is kept, want %s", all, b.Node())
	}
}
