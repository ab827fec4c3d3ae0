package clusterdemo

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// A Node is a process of the demo.
type Node struct {
	Name   string
	Log    *os.File
	Cmd    *exec.Cmd
	Ended  chan struct{} // closed when the process has ended
	Err    error         // error of the ended process
	killed bool
	page   string // URL of its web page, once known
}

// startNode starts another node. The first three nodes run servers.
func (d *Demo) startNode() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	i := len(d.Procs)
	p := &Node{Name: "node-" + strconv.Itoa(i+1), Ended: make(chan struct{})}
	args := []string{"node", "--crawl", Crawl, "--name", p.Name, "--out", d.folderOf(p), "--strategy", d.Strategy,
		"--dns-server", d.Server.DNS(), "--memory", "64MB", "--min-free-disk", "0"}
	if d.Mesh() {
		args = append(args, d.meshArgs(i)...)
	} else {
		args = append(args, "--servers", strconv.Itoa(len(d.Servers)), "--join", strings.Join(d.Servers, ","))
	}
	if i < len(d.Servers) {
		args = append(args, "--listen", d.Servers[i])
	}
	if d.UI {
		args = append(args, "--ui=127.0.0.1:0", "--ui-no-token="+strconv.FormatBool(d.NoToken))
	}
	args = append(args, d.unreachableFlags(i)...)
	if p.Log, err = os.Create(filepath.Join(d.Out, p.Name+".log")); err != nil {
		return err
	}
	p.Cmd = exec.Command(self, args...)
	p.Cmd.Stdout, p.Cmd.Stderr = p.Log, p.Log
	p.Cmd.Env = d.Environment(d.Secret)
	if err := p.Cmd.Start(); err != nil {
		return errors.Join(err, p.Log.Close())
	}
	d.Procs = append(d.Procs, p)
	go func() {
		p.Err = errors.Join(p.Cmd.Wait(), p.Log.Close())
		close(p.Ended)
	}()
	return nil
}

// unusedAddress is a loopback address on which nothing listens.
const unusedAddress = "127.78.0.1"

// unreachableFlags returns flags that make a node's share of the hosts unreachable. Two of the initial nodes reach each
// host, so that one of them may die.
func (d *Demo) unreachableFlags(node int) (args []string) {
	if !d.Hub() {
		return nil
	}
	first := d.Nodes - 1
	for i := range d.web.Len() {
		if node == i%first || node == (i+1)%first {
			continue
		}
		h := fnv.New32a()
		fmt.Fprintf(h, "%d %d", i, node)
		if float64(h.Sum32()%1000) < 1000*d.UnreachableShare {
			args = append(args, "--resolve", d.web.Host(i)+":*:"+unusedAddress)
		}
	}
	return args
}

// Kill kills a node without warning, like a power cut.
func (p *Node) Kill() error {
	p.killed = true
	return p.Cmd.Process.Kill()
}

// failed returns an error if a node ended that should still run.
func (p *Node) failed() error {
	if !p.ended() {
		return nil
	}
	if p.killed || p.Err == nil {
		return nil
	}
	return fmt.Errorf("%s has ended: %w: see %s", p.Name, p.Err, p.Log.Name())
}

func (p *Node) ended() bool {
	select {
	case <-p.Ended:
		return true
	default:
		return false
	}
}

func (p *Node) wait(ctx context.Context) error {
	select {
	case <-p.Ended:
		return p.failed()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// KillAll kills the nodes that still run.
func (d *Demo) KillAll() {
	for _, p := range d.Procs {
		_ = p.Cmd.Process.Kill() // it may already have ended
		<-p.Ended
	}
}

// reserved has the ports that FreeAddresses has returned. Their nodes may start to listen much later.
var reserved sync.Map

// FreeAddresses returns n loopback addresses whose port and next port are free. The ports are below the ephemeral
// range, so that no connection takes one before a node listens on it. A process never gets the same address twice.
func FreeAddresses(n int) ([]string, error) {
	var all []string
	for tries := 0; len(all) < n; tries++ {
		if tries > 100*n {
			return nil, errors.New("no free ports on 127.0.0.1")
		}
		port := 15000 + 2*rand.IntN(8000)
		first, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		defer first.Close() // stays open until all are found, so that none is found twice
		second, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port+1))
		if err != nil {
			continue
		}
		defer second.Close()
		if _, is := reserved.LoadOrStore(port, true); is {
			continue
		}
		all = append(all, first.Addr().String())
	}
	return all, nil
}
