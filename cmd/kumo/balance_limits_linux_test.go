package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kumo/internal/lab/netlab"
)

// TestBalanceLimits shows that the limits of TestBalance's machines work. It measures what programs get that use one
// resource alone, and how long a single node takes for a hundred URLs while one resource after another is scarce. It
// runs for two minutes if KUMO_TEST_BALANCE is set.
func TestBalanceLimits(t *testing.T) {
	if number("KUMO_TEST_BALANCE", 0) == 0 {
		t.Skip("SKIPPED: it takes two minutes, and root; set KUMO_TEST_BALANCE to run it")
	}
	preferred(t)
	t.Run("programs", limitsOfPrograms)
	t.Run("nodes", limitsOfNodes)
}

func limitsOfPrograms(t *testing.T) {
	lab := netlab.ForTest(t, 1)
	source := pouring(t, lab.Add(t, "source"))
	var b strings.Builder
	fmt.Fprintf(&b, "| node | processors, want | get | memory MB | %g MB below | as much above | network Mb/s, want "+
		"| get | disk Mb/s, want | get |\n|%s\n", memoryStep/1e6, strings.Repeat(" --- |", 10))
	for i, m := range unequal {
		h := lab.Add(t, fmt.Sprint("n", i+1))
		dir := m.limit(t, h)
		p := &probed{T: t, host: h}
		want, memory := m.limits().CPU, m.limits().Memory
		cpu, network, disk := p.processors(), p.network(source), p.disk(dir)
		below, above := p.holds(memory-memoryStep), p.holds(memory+memoryStep)
		fmt.Fprintf(&b, "| %d | %.3f | %.3f | %.0f | %s | %s | %g | %.2f | %g | %.2f |\n", i+1, want, cpu,
			float64(memory)/(1<<20), inMemory(below), inMemory(above), m.network, network, m.disk, disk)
		if cpu > want*1.1 || network > m.network*1.1 || disk > m.disk*1.2 || !below || above {
			t.Errorf("a limit of n%d does not hold", i+1)
		}
		if cpu < want*0.8 || network < m.network*0.8 || disk < m.disk*0.8 {
			t.Errorf("n%d has less than it is to have", i+1)
		}
	}
	t.Log("\n" + b.String())
}

func inMemory(is bool) string {
	if is {
		return "held"
	}
	return "killed"
}

// probed measures the resources that programs on a host get.
type probed struct {
	*testing.T
	host *netlab.Host
}

const (
	probeTime  = 2 * time.Second
	memoryStep = 24_000_000
	probeBytes = 1 << 20
)

// run runs a command to its end, and reports whether it ended by itself.
func (p *probed) run(command string) (took time.Duration, ok bool) {
	began := time.Now()
	life, err := p.host.Start(exec.Command("sh", "-c", command))
	if err != nil {
		p.Fatal(err)
	}
	err = life.Wait(time.Minute)
	return time.Since(began), err == nil
}

func (p *probed) usage() netlab.Usage {
	u, err := p.host.Usage()
	if err != nil {
		p.Fatal(err)
	}
	return u
}

// processors runs two busy loops.
func (p *probed) processors() float64 {
	before := p.usage().CPU
	loop := fmt.Sprintf("timeout %g sh -c 'while :; do :; done'", probeTime.Seconds())
	took, _ := p.run(loop + " & " + loop + "; wait")
	return (p.usage().CPU - before).Seconds() / took.Seconds()
}

// holds reports whether a program can use this much memory.
func (p *probed) holds(bytes int64) bool {
	n := strconv.FormatInt(bytes, 10)
	_, ok := p.run("head -c " + n + " /dev/zero | tail -c " + n + " >/dev/null")
	return ok
}

// disk returns how many megabits per second are written and made durable.
func (p *probed) disk(dir string) float64 {
	took, ok := p.run("dd if=/dev/zero of=" + filepath.Join(dir, "probe") + " bs=64k count=" +
		strconv.Itoa(probeBytes>>16) + " conv=fsync 2>/dev/null")
	if !ok {
		p.Error("nothing can be written to the disk")
	}
	return probeBytes * 8 / 1e6 / took.Seconds()
}

// network returns how many megabits per second are received.
func (p *probed) network(from netip.AddrPort) (rate float64) {
	if err := p.host.Do(func() error {
		c, err := net.Dial("tcp4", from.String())
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := io.CopyN(io.Discard, c, probeBytes/4); err != nil { // wait until the rate is steady
			return err
		}
		began := time.Now()
		n, err := io.CopyN(io.Discard, c, probeBytes)
		rate = float64(n) * 8 / 1e6 / time.Since(began).Seconds()
		return err
	}); err != nil {
		p.Error(err)
	}
	return rate
}

// pouring starts a server that sends data to each client without end.
func pouring(t *testing.T, h *netlab.Host) netip.AddrPort {
	t.Helper()
	var l net.Listener
	if err := h.Do(func() (err error) {
		l, err = net.Listen("tcp4", netip.AddrPortFrom(h.Addr(), 0).String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for block := make([]byte, 64<<10); err == nil; {
					_, err = c.Write(block)
				}
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// limitsOfNodes runs crawls of single nodes, on one machine and on ones with less of one resource.
func limitsOfNodes(t *testing.T) {
	ample := bedMachine{4, 2.4, 4, 100, 100}
	cases := []struct {
		name string
		bedMachine
	}{{"network 2 Mb/s", ample}, {"disk 1 Mb/s", ample}, {"1 core", ample}, {"1 GB", ample}, {"ample", ample}}
	cases[0].network, cases[1].disk, cases[2].cores, cases[3].memory = 2, 1, 1, 1
	runs := make([]*bedRun, len(cases))
	t.Run("each", func(t *testing.T) {
		for i, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				p := bedPlan{machines: []bedMachine{c.bedMachine}, strategy: "shard", pages: balancePages, urls: balanceAlone,
					seed: 1}
				runs[i] = newBed(t, fmt.Sprint("limit-", i), p).crawl(balanceMost)
			})
		}
	})
	if t.Failed() {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| machine | %d URLs in s | CPU s | throttled s | peak MB | written MB |\n|%s\n", balanceAlone,
		strings.Repeat(" --- |", 6))
	for i, c := range cases {
		u := runs[i].nodes[0].usage
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %.1f | %.0f | %.1f |\n", c.name, runs[i].took.Seconds(), u.CPU.Seconds(),
			u.Throttled.Seconds(), float64(u.Peak)/(1<<20), float64(u.Written)/1e6)
		// a node needs less memory than any machine here has
		if i < 3 && runs[i].took < 2*runs[len(runs)-1].took {
			t.Errorf("with %s it takes %v, and with plenty of all %v", c.name, runs[i].took, runs[len(runs)-1].took)
		}
	}
	t.Log("\n" + b.String())
}
