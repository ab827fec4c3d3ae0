package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/base/secret"
	"kumo/internal/cluster/bus/p2p"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/member/peer"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/strategy"
	"kumo/internal/lab/clusterdemo"
)

// BenchmarkIdleMeshNode measures kumo node in a process of its own, which waits for a crawl's start among other mesh
// nodes: its resident memory and its processor time. KUMO_TEST_MESH_IDLE is the duration in seconds.
//
// The others are messengers with state machines, in this process, which all know each other, as in a real crawl. The
// nodes of a star communicate only with the measured node, so that more of them fit into a machine. Each keeps sending
// it requests; in a real crawl only the nodes with it in their tables do.
func BenchmarkIdleMeshNode(b *testing.B) {
	seconds, err := strconv.Atoi(os.Getenv("KUMO_TEST_MESH_IDLE"))
	if err != nil {
		b.Skip("SKIPPED: KUMO_TEST_MESH_IDLE is not set")
	}
	for _, c := range []struct {
		others int
		star   bool
	}{{0, false}, {50, false}, {1000, true}} {
		name := fmt.Sprint(c.others, " others")
		if c.star {
			name += " in a star"
		}
		b.Run(name, func(b *testing.B) {
			for range b.N {
				benchIdleMesh(b, c.others, c.star, time.Duration(seconds)*time.Second)
			}
		})
	}
}

func benchIdleMesh(b *testing.B, others int, star bool, long time.Duration) {
	key := secret.New()
	at, err := clusterdemo.FreeAddresses(1)
	if err != nil {
		b.Fatal(err)
	}
	n := exec.Command(kumoProgram(b), "node", "-q", "--crawl", "idle", "--strategy", "mesh", "--no-lan", "--name", "whole",
		"--out", filepath.Join(b.TempDir(), "whole"), "--listen", at[0])
	n.Env = append(os.Environ(), secretVariable+"="+key.Text())
	if err := n.Start(); err != nil {
		b.Fatal(err)
	}
	var around sync.WaitGroup
	ctx, cancel := context.WithCancel(b.Context())
	defer func() {
		cancel()
		_ = n.Process.Kill()
		_ = n.Wait() // it was killed
		around.Wait()
	}()
	slots := make(chan struct{}, 2*runtime.GOMAXPROCS(0)) // nodes that join at the same time
	joined := make(chan error, others)
	for i := range others {
		around.Go(func() { joined <- beside(ctx, i, key, at[0], star, slots, &around) })
	}
	for range others {
		if err := <-joined; err != nil {
			b.Fatal(err)
		}
	}
	linger(ctx, 20*time.Second) // until the work of joining is over
	before := processorOf(b, n.Process.Pid)
	linger(ctx, long)
	took := processorOf(b, n.Process.Pid) - before
	b.ReportMetric(float64(residentOf(b, n.Process.Pid))/(1<<20), "MiB")
	b.ReportMetric(100*took.Seconds()/long.Seconds(), "%cpu")
	b.ReportMetric(0, "ns/op")
}

func linger(ctx context.Context, long time.Duration) {
	select {
	case <-time.After(long):
	case <-ctx.Done():
	}
}

// beside runs another node that joins at an address, and lives until ctx ends.
func beside(ctx context.Context, i int, key secret.Secret, at string, star bool, slots chan struct{},
	all *sync.WaitGroup) error {
	slots <- struct{}{}
	defer func() { <-slots }()
	m, err := p2p.Open(p2p.Config{Name: fmt.Sprint("n", i), Crawl: node.CrawlWord("idle"), Secret: key,
		Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}, Reach: p2p.ReachPublic})
	if err != nil {
		return err
	}
	found, err := m.Dial(ctx, at)
	for tries := 0; err != nil && tries < 30 && ctx.Err() == nil; tries++ {
		linger(ctx, time.Second) // the node has just begun
		found, err = m.Dial(ctx, at)
	}
	if err != nil {
		return fmt.Errorf("join %s: %w", at, err)
	}
	only := found[0]
	if !star {
		only = ""
	}
	l := &live{messenger: m, only: only, came: make(chan peer.Event, 1000)}
	l.peer = peer.New(peer.Config{Overlay: overlay.Config{Self: contactOf(m.Self()), Seed: uint64(i)},
		Mesh: mesh.Config{HasPending: func(string) bool { return false }, Process: uint64(i + 1)}})
	all.Go(func() {
		_ = m.Receive(ctx, func(from strategy.Node, data []byte) {
			if len(data) > 0 && data[0] == 'p' {
				l.came <- peer.Message{From: contactOf(m.Contact(from)), Data: slices.Clone(data[1:])}
			}
		})
		close(l.came)
	})
	all.Go(func() {
		l.run(contactOf(m.Contact(found[0])))
		_ = m.Close()
	})
	return nil
}

func contactOf(c p2p.Contact) overlay.Contact {
	return overlay.Contact{Node: string(c.Node), Addrs: c.Addrs}
}

// A live node answers others, and maintains its overlay.
type live struct {
	messenger *p2p.Messenger
	peer      *peer.Peer
	only      strategy.Node // the only node that it communicates with; "": all
	came      chan peer.Event
	wake      <-chan time.Time
}

func (l *live) run(first overlay.Contact) {
	l.carryOut(l.peer.Start(time.Now(), nil))
	l.carryOut(l.peer.Step(time.Now(), []peer.Event{peer.Join{Contacts: []overlay.Contact{first}}}, nil))
	for {
		var e peer.Event
		select {
		case m, open := <-l.came:
			if !open {
				return
			}
			e = m
		case <-l.wake:
			e = peer.Tick{}
		}
		l.carryOut(l.peer.Step(time.Now(), []peer.Event{e}, nil))
	}
}

func (l *live) carryOut(actions []peer.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case peer.Send:
			if to := strategy.Node(a.To.Node); l.only == "" || l.only == to {
				l.messenger.Learn(p2p.Contact{Node: to, Addrs: a.To.Addrs})
				_ = l.messenger.Send(to, append([]byte{'p'}, a.Data...)) // may be lost, as any message
			}
		case peer.Wake:
			l.wake = time.After(time.Until(a.At))
		}
	}
}

// residentOf returns the resident memory of a process, in bytes.
func residentOf(b *testing.B, pid int) int64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// processorOf returns the processor time of a process, measured in ticks of a hundredth of a second.
func processorOf(b *testing.B, pid int) time.Duration {
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
