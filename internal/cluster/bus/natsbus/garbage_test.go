package natsbus

import (
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"kumo/internal/base/secret"
)

// Strangers send garbage to both ports of each server, and connect with another secret, while a node writes: all
// acknowledged writes are there in the end.
func TestGarbageAtThePorts(t *testing.T) {
	t.Parallel()
	s := secret.New()
	servers := three(t, "garbage", s)
	at := servers[0].cfg.Servers
	w := newWriter(t, open(t, Config{Crawl: "garbage", Servers: at, Secret: s, Timings: Timings{Request: time.Second}}))
	w.goOn(t, 20)
	seed := rand.Uint64()
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	var all sync.WaitGroup
	for i := range 24 {
		dice := rand.New(rand.NewPCG(seed, uint64(i)))
		host, port, err := splitAddress(at[i%3])
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { throw(t, net.JoinHostPort(host, strconv.Itoa(port+i/3%2)), dice) })
	}
	other := Config{Crawl: "garbage", Join: at, Secret: secret.New()}
	if err := fails(t, other); err == nil {
		t.Error("another secret is good enough")
	}
	all.Wait()
	w.goOn(t, 20)
	w.verify(t)
}

// throw sends garbage of some kind.
func throw(t *testing.T, address string, dice *rand.Rand) {
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Errorf("%s: %v", address, err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	begin := []string{"", "CONNECT {\"verbose\":true}\r\n", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00",
		"PING\r\nPUB > 5\r\n", "INFO {\r\n"}
	junk := make([]byte, dice.IntN(64<<10))
	for i := range junk {
		junk[i] = byte(dice.Uint32())
	}
	_, _ = io.WriteString(conn, begin[dice.IntN(len(begin))]) // the server may close it at any time
	_, _ = conn.Write(junk)
	_, _ = io.Copy(io.Discard, conn)
}
