package natsbus

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"kumo/internal/base/secret"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/bustest"
)

// fails opens a cluster that must not open, and returns the error.
func fails(t *testing.T, cfg Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := Open(ctx, cfg)
	if err == nil {
		c.Close()
		t.Fatal("opened")
	}
	if ctx.Err() != nil {
		t.Errorf("it took all the time there was: %v", err)
	}
	return err
}

func TestWrongConfigurations(t *testing.T) {
	for want, cfg := range map[string]Config{
		"one word": {Crawl: "a.b", Listen: "127.0.0.1:7000", Dir: "x"},
		"1, 3 or 5": {Crawl: "a", Listen: "127.0.0.1:1", Servers: []string{"127.0.0.1:1", "127.0.0.1:3"},
			Dir: "x"},
		"kumo secret new":       {Crawl: "a", Listen: "0.0.0.0:7000", Dir: "x"},
		"192.0.2.1:7000 is not": {Crawl: "a", Join: []string{"192.0.2.1:7000"}},
		"needs a directory":     {Crawl: "a", Listen: "127.0.0.1:7000"},
		"no way":                {Crawl: "a"},
		"want host:port":        {Crawl: "a", Join: []string{"127.0.0.1"}},
		"no port number":        {Crawl: "a", Join: []string{"127.0.0.1:http"}},
		"from 1 to 65534":       {Crawl: "a", Join: []string{"127.0.0.1:65535"}},
	} {
		if err := fails(t, cfg); !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestWhoDoesNotBelong(t *testing.T) {
	t.Parallel()
	a, b := secret.New(), secret.New()
	at := bustest.Addresses(t, 2)
	open(t, Config{Crawl: "locked", Listen: at[0], Dir: t.TempDir(), Secret: a})
	open(t, Config{Crawl: "plain", Listen: at[1], Dir: t.TempDir()})
	stranger := greeter(t, "220 mail.example\r\n")
	for _, c := range []struct {
		name string
		cfg  Config
		want error
	}{
		{"another secret", Config{Crawl: "locked", Join: at[:1], Secret: b}, ErrSecret},
		{"no secret", Config{Crawl: "locked", Join: at[:1]}, ErrWantsSecret},
		{"a secret where none is", Config{Crawl: "plain", Join: at[1:], Secret: a}, ErrNoSecret},
		{"another crawl", Config{Crawl: "other", Join: at[1:]}, ErrOtherCrawl},
		{"another crawl with the secret", Config{Crawl: "other", Join: at[:1], Secret: a}, ErrOtherCrawl},
		{"something else", Config{Crawl: "a", Join: []string{stranger}}, ErrNotKumo},
		{"something else, with a secret", Config{Crawl: "a", Join: []string{stranger}, Secret: a}, ErrNotKumo},
		{"an address that is taken", Config{Crawl: "other", Listen: at[1], Dir: t.TempDir()}, ErrOtherCrawl},
		{"an address that is taken by something else", Config{Crawl: "other", Listen: stranger, Dir: t.TempDir()},
			ErrNotKumo},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := fails(t, c.cfg)
			var where *AddressError
			if !errors.Is(err, c.want) || !errors.As(err, &where) || !strings.Contains(err.Error(), where.Address+" ") {
				t.Errorf("%v, want %v", err, c.want)
			}
			t.Log(err)
		})
	}
	if err := fails(t, Config{Crawl: "plain", Listen: at[1], Dir: t.TempDir()}); !strings.Contains(err.Error(),
		"already running") {
		t.Errorf("the same server twice: %v", err)
	}
}

// greeter sends the same text to each client, and returns its address.
func greeter(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, text)
			conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	at := bustest.Addresses(t, 1)
	_, err := Open(ctx, Config{Crawl: "a", Join: at})
	if !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), at[0]) {
		t.Errorf("nobody: %v", err)
	}
}

func TestOtherServers(t *testing.T) {
	stream := func(servers ...string) jetstream.StreamConfig {
		c := &Cluster{cfg: Config{Servers: servers}, names: names{"a"}}
		return c.registryConfig()
	}
	if err := sameStream(stream("a:1", "b:1", "c:1"), stream("c:1", "b:1", "a:1")); err != nil {
		t.Errorf("the same servers in another order: %v", err)
	}
	if err := sameStream(stream("a:1"), stream("a:2")); err != nil {
		t.Errorf("a single server that moved: %v", err)
	}
	if err := sameStream(stream("a:1", "b:1", "c:1"), stream()); err != nil {
		t.Errorf("a client that does not know the servers: %v", err)
	}
	for _, other := range [][]string{{"a:1"}, {"a:1", "b:1", "d:1"}} {
		if err := sameStream(stream("a:1", "b:1", "c:1"), stream(other...)); !errors.Is(err, ErrServers) {
			t.Errorf("%v: %v", other, err)
		}
	}
}

// natsServer runs a NATS server that is not kumo's, and returns its URL.
func natsServer(t *testing.T, opts server.Options) string {
	t.Helper()
	opts.Host, opts.Port, opts.NoSigs, opts.NoLog, opts.StoreDir = "127.0.0.1", server.RANDOM_PORT, true, true, t.TempDir()
	s, err := server.NewServer(&opts)
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server does not start")
	}
	return s.ClientURL()
}

func TestNATSThatIsThere(t *testing.T) {
	t.Parallel()
	url := natsServer(t, server.Options{JetStream: true, MaxPayload: maxPayload})
	bustest.Run(t, inTurn(open(t, Config{Crawl: "a", NATS: url}), open(t, Config{Crawl: "a", NATS: url})))
	other, err := open(t, Config{Crawl: "b", NATS: url}).Join("x~1")
	if err != nil {
		t.Fatal(err)
	}
	if e, err := other.Get(t.Context(), "count"); err != nil || e.Key != "" {
		t.Errorf("another crawl sees %v, %v", e, err)
	}
}

func TestNATSThatWillNotDo(t *testing.T) {
	t.Parallel()
	url := natsServer(t, server.Options{MaxPayload: maxPayload})
	if err := fails(t, Config{Crawl: "a", NATS: url}); !errors.Is(err, ErrNoJetStream) {
		t.Errorf("a NATS without JetStream: %v", err)
	}
	url = natsServer(t, server.Options{JetStream: true})
	if err := fails(t, Config{Crawl: "a", NATS: url}); !strings.Contains(err.Error(), "max_payload") {
		t.Errorf("a NATS for small messages: %v", err)
	}
	url = natsServer(t, server.Options{JetStream: true, MaxPayload: maxPayload, Username: "a", Password: "b"})
	if err := fails(t, Config{Crawl: "a", NATS: url}); !strings.Contains(err.Error(), "uthorization") {
		t.Errorf("a NATS that wants a password: %v", err)
	}
}

// A client that was started before the nodes waits for them, and then finds out whether they share the servers.
func TestAClientAwaitsNodes(t *testing.T) {
	t.Parallel()
	url := natsServer(t, server.Options{JetStream: true, MaxPayload: maxPayload})
	connect := func(crawl string) *Cluster {
		c, err := Connect(t.Context(), Config{Crawl: crawl, NATS: url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	one, several := connect("one"), connect("several")
	if err := several.CheckNodes(t.Context()); !errors.Is(err, ErrNoNodes) {
		t.Errorf("without nodes: %v", err)
	}
	open(t, Config{Crawl: "one", NATS: url})
	if err := one.AwaitNodes(t.Context()); err != nil || one.Shared() {
		t.Errorf("with a node of its own crawl: shared %v, %v", one.Shared(), err)
	}
	open(t, Config{Shared: true, NATS: url})
	if err := several.AwaitNodes(t.Context()); err != nil || !several.Shared() {
		t.Errorf("with a node of all crawls: shared %v, %v", several.Shared(), err)
	}
}

// TestServerStartsAgain stops the only server under a client, which continues when the server is back.
func TestServerStartsAgain(t *testing.T) {
	t.Parallel()
	cfg := Config{Crawl: "again", Listen: bustest.Addresses(t, 1)[0], Dir: t.TempDir(), Secret: secret.New()}
	serving := open(t, cfg)
	client := open(t, Config{Crawl: "again", Join: []string{cfg.Listen}, Secret: cfg.Secret,
		Timings: Timings{Request: time.Second}})
	w := newWriter(t, client)
	w.goOn(t, 20)
	serving.Close()
	w.stopped(t)
	open(t, cfg)
	w.goOn(t, 20)
	w.verify(t)
}

func TestClosedCluster(t *testing.T) {
	t.Parallel()
	c := open(t, Config{Crawl: "closed", Listen: bustest.Addresses(t, 1)[0], Dir: t.TempDir()})
	b, err := c.Join("a~1")
	if err != nil {
		t.Fatal(err)
	}
	watching := make(chan error, 1)
	synced := make(chan struct{})
	go func() { watching <- b.Watch(t.Context(), "", func(bus.Entry) { close(synced) }) }()
	<-synced
	c.Close()
	if err := <-watching; !errors.Is(err, bus.ErrClosed) {
		t.Errorf("Watch ended with %v", err)
	}
	if _, err := b.Put(t.Context(), "a", nil, 0); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("Put: %v", err)
	}
}
