package p2p

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"

	"kumo/internal/base/secret"
	"kumo/internal/cluster/strategy"
)

// BenchmarkMessages sends messages of 256 B from one node to another in the same process, as fast as possible without
// drops. The processor time is that of both sides.
func BenchmarkMessages(b *testing.B) {
	for name, listen := range map[string]string{"tcp": "/ip4/127.0.0.1/tcp/0", "quic": "/ip4/127.0.0.1/udp/0/quic-v1"} {
		b.Run(name, func(b *testing.B) { benchMessages(b, listen) })
	}
}

func benchMessages(b *testing.B, listen string) {
	s := secret.New()
	free := Limits{Messages: 1 << 30, Bytes: 1 << 40}
	from := open(b, Config{Name: "from", Secret: s, Listen: []string{listen}, Limits: free})
	to := open(b, Config{Name: "to", Secret: s, Listen: []string{listen}, Limits: free})
	dial(b, from, to)
	ctx, cancel := context.WithCancel(b.Context())
	var came atomic.Int64
	more := make(chan struct{}, 1)
	var receiving sync.WaitGroup
	receiving.Go(func() {
		_ = to.Receive(ctx, func(strategy.Node, []byte) {
			if came.Add(1)%1000 == 0 {
				select {
				case more <- struct{}{}:
				default:
				}
			}
		})
	})
	message := make([]byte, 256)
	b.SetBytes(256)
	before := processor(b)
	b.ResetTimer()
	for i := range b.N {
		for int64(i)-came.Load() > 8000 { // of the 8 MiB that may be queued
			<-more
		}
		if err := from.Send(to.Node(), message); err != nil {
			b.Fatal(err)
		}
	}
	for late := time.After(patience); came.Load() < int64(b.N); {
		select {
		case <-late:
			b.Fatalf("%d of %d came: %+v", came.Load(), b.N, from.Stats())
		default:
			runtime.Gosched()
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric(float64((processor(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/message")
	cancel()
	receiving.Wait()
}

// processor returns the processor time that this process has used.
func processor(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkIdle measures a node in a process of its own, with 1,000 connected and silent nodes in this process: the
// memory for each, and the processor time. KUMO_TEST_P2P_IDLE is the duration in seconds.
func BenchmarkIdle(b *testing.B) {
	seconds, err := strconv.Atoi(os.Getenv("KUMO_TEST_P2P_IDLE"))
	if err != nil {
		b.Skip("SKIPPED: KUMO_TEST_P2P_IDLE is not set")
	}
	for name, listen := range map[string]string{"tcp": "/ip4/127.0.0.1/tcp/0", "quic": "/ip4/127.0.0.1/udp/0/quic-v1"} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				benchIdle(b, listen, seconds)
			}
		})
	}
}

func benchIdle(b *testing.B, listen string, seconds int) {
	const n = 1000
	s := secret.New()
	settings, err := json.Marshal(processSettings{Name: "idle", Secret: s.Text(), Dir: b.TempDir(),
		Listen: []string{listen}})
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), processVar+"="+string(settings))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { in.Close(); _ = cmd.Wait() }()
	lines := json.NewDecoder(onlyJSON{out})
	var self Contact
	if err := lines.Decode(&self); err != nil {
		b.Fatal(err)
	}
	alone := memory(b, cmd.Process.Pid)
	id, err := idOf(self.Node)
	if err != nil {
		b.Fatal(err)
	}
	to := peer.AddrInfo{ID: id, Addrs: parsed(self.Addrs)}
	member := open(b, Config{Name: "member", Secret: s})
	var streams []network.Stream
	for range n {
		streams = append(streams, bareNode(b, member, to))
	}
	time.Sleep(time.Duration(seconds) * time.Second / 2) // until the traffic after the connections is over
	before := taken(b, cmd.Process.Pid)
	time.Sleep(time.Duration(seconds) * time.Second)
	cpu := taken(b, cmd.Process.Pid) - before
	b.ReportMetric(float64(alone)/(1<<20), "MiB-alone")
	b.ReportMetric(float64(memory(b, cmd.Process.Pid)-alone)/n/1024, "KiB/peer")
	b.ReportMetric(100*cpu.Seconds()/float64(seconds), "%cpu")
	for _, s := range streams {
		if s.Conn().IsClosed() {
			b.Error("a connection was lost")
		}
	}
}

// bareNode is the minimum that another node accepts as a node: many fit into a process.
func bareNode(b *testing.B, member *Messenger, to peer.AddrInfo) network.Stream {
	b.Helper()
	muxer := *yamux.DefaultTransport
	h, err := libp2p.New(libp2p.NoListenAddrs, libp2p.DisableRelay(), libp2p.DisableMetrics(), libp2p.Ping(false),
		libp2p.Transport(tcp.NewTCPTransport), libp2p.Transport(member.membership.newQUIC),
		libp2p.Security(securityID, member.membership.newSecurity), libp2p.Muxer(yamux.ID, &muxer),
		libp2p.ConnectionManager(connmgr.NullConnMgr{}), libp2p.ResourceManager(&network.NullResourceManager{}))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { h.Close() })
	if err := h.Connect(b.Context(), to); err != nil {
		b.Fatal(err)
	}
	s, err := h.NewStream(b.Context(), to.ID, linkProtocol)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Write([]byte("\x01x")); err != nil {
		b.Fatal(err)
	}
	if _, err := readName(s); err != nil {
		b.Fatal(err)
	}
	return s
}

// onlyJSON removes the word before each line's data.
type onlyJSON struct {
	from interface{ Read([]byte) (int, error) }
}

func (r onlyJSON) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	kept := p[:0]
	for line := range strings.Lines(string(p[:n])) {
		_, rest, _ := strings.Cut(line, " ")
		kept = append(kept, rest...)
	}
	return len(kept), err
}

// memory returns the memory of a process.
func memory(b *testing.B, pid int) int64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, is := strings.CutPrefix(line, "VmRSS:"); is {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return n << 10
		}
	}
	b.Fatal("no VmRSS")
	return 0
}

// taken returns the processor time of a process, in ticks of a hundredth of a second.
func taken(b *testing.B, pid int) time.Duration {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(data[strings.LastIndex(string(data), ")")+2:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
