package main

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
)

// A demoNode is a process of kumo cluster demo.
type demoNode struct {
	name   string
	log    *os.File
	cmd    *exec.Cmd
	ended  chan struct{} // closed when it has
	err    error         // then
	killed bool
	page   string // where its web page is, once that is known
}

// startNode starts one node more: the first three run servers.
func (d *clusterShow) startNode() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	i := len(d.procs)
	p := &demoNode{name: "node-" + strconv.Itoa(i+1), ended: make(chan struct{})}
	args := []string{"node", "--crawl", demoCrawl, "--name", p.name, "--out", d.folderOf(p), "--strategy", d.strategy,
		"--dns-server", d.server.DNS(), "--memory", "64MB", "--min-free-disk", "0"}
	if d.mesh() {
		args = append(args, d.meshArgs(i)...)
	} else {
		args = append(args, "--servers", strconv.Itoa(len(d.servers)), "--join", strings.Join(d.servers, ","))
	}
	if i < len(d.servers) {
		args = append(args, "--listen", d.servers[i])
	}
	if d.ui {
		args = append(args, "--ui=127.0.0.1:0", "--ui-no-token="+strconv.FormatBool(d.noToken))
	}
	args = append(args, d.shutOut(i)...)
	if p.log, err = os.Create(filepath.Join(d.out, p.name+".log")); err != nil {
		return err
	}
	p.cmd = exec.Command(self, args...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.Env = append(ownEnvironment(), secretVariable+"="+d.secret.Text())
	if err := p.cmd.Start(); err != nil {
		return errors.Join(err, p.log.Close())
	}
	d.procs = append(d.procs, p)
	go func() {
		p.err = errors.Join(p.cmd.Wait(), p.log.Close())
		close(p.ended)
	}()
	return nil
}

// nobody is an address of this machine where nothing listens.
const nobody = "127.78.0.1"

// shutOut are flags that keep a node from its share of the hosts. Two of the nodes that are there from the beginning
// reach each host, so that one may die.
func (d *clusterShow) shutOut(node int) (args []string) {
	if !d.hub() {
		return nil
	}
	first := d.nodes - 1
	for i := range d.made.Len() {
		if node == i%first || node == (i+1)%first {
			continue
		}
		h := fnv.New32a()
		fmt.Fprintf(h, "%d %d", i, node)
		if float64(h.Sum32()%1000) < 1000*d.apart {
			args = append(args, "--resolve", d.made.Host(i)+":*:"+nobody)
		}
	}
	return args
}

// kill ends a node as a power cut would.
func (p *demoNode) kill() error {
	p.killed = true
	return p.cmd.Process.Kill()
}

// failed returns why a node has ended that should not have.
func (p *demoNode) failed() error {
	select {
	case <-p.ended:
	default:
		return nil
	}
	if p.killed || p.err == nil {
		return nil
	}
	return fmt.Errorf("%s has ended: %w: see %s", p.name, p.err, p.log.Name())
}

// wait waits for a node's end.
func (p *demoNode) wait(ctx context.Context) error {
	select {
	case <-p.ended:
		return p.failed()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end ends the nodes that still run.
func (d *clusterShow) end() {
	for _, p := range d.procs {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
	}
}

// freeAddresses are addresses of this machine whose ports are free, and the next ones, too. They lie below the ports
// that systems give to connections: one of those could take a port before it is listened to.
func freeAddresses(n int) ([]string, error) {
	var all []string
	for tries := 0; len(all) < n; tries++ {
		if tries > 100*n {
			return nil, errors.New("no free ports are found on 127.0.0.1")
		}
		port := 15000 + 2*rand.IntN(8000)
		first, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		defer first.Close() // until all are found, so that none is found twice
		second, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port+1))
		if err != nil {
			continue
		}
		defer second.Close()
		all = append(all, first.Addr().String())
	}
	return all, nil
}
