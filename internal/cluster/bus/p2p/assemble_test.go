package p2p

import (
	"net"
	"testing"

	"kumo/internal/base/secret"
)

// TestAPortThatIsTaken checks that a node that cannot listen returns an error, and closes what it has opened.
func TestAPortThatIsTaken(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", tcp.Addr().String())
	if err != nil {
		t.Skip("the port of UDP is another's: ", err)
	}
	defer udp.Close()
	for _, s := range []secret.Secret{{}, secret.New()} {
		cfg := Config{Name: "a", Crawl: "test", Dir: t.TempDir(), Secret: s, Listen: []string{tcp.Addr().String()}}
		if m, err := Open(cfg); err == nil {
			t.Errorf("with secret: %v: it listens on %s, which is taken", !s.IsZero(), tcp.Addr())
			_ = m.Close()
		}
	}
}
