package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/app/wire/cluster"
)

const (
	meshNodes = 8 // of a demo, unless the user wants another number
	leastMesh = 6
)

func (d *clusterShow) mesh() bool { return d.strategy == "mesh" }

func (d *clusterShow) folderOf(p *demoNode) string { return filepath.Join(d.out, p.name) }

// meshArgs are flags of a node of a crawl without a centre. All but the first join by way of the first.
func (d *clusterShow) meshArgs(node int) []string {
	args := []string{"--no-lan", "--allow-private"}
	if node > 0 {
		args = append(args, "--join", d.servers[0])
	}
	return args
}

// crawlMesh has nodes without a centre crawl.
func (d *clusterShow) crawlMesh(ctx context.Context) (err error) {
	for range d.nodes - 1 {
		if err := d.startNode(); err != nil {
			return err
		}
	}
	control, err := d.meshClient(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, control.Close()) }()
	d.begun = time.Now()
	together := func(n int) func(*inspect.Cluster) bool {
		return func(c *inspect.Cluster) bool { return c.Settled && c.Gathered.Nodes == n }
	}
	if err := d.until(ctx, control, together(d.nodes-1)); err != nil {
		return err
	}
	if err := d.start(ctx, control); err != nil {
		return err
	}
	d.begun = time.Now()
	d.say("the crawl begins: %d nodes, %s", d.nodes-1, d.server.SeedURLs()[0])
	if err := d.until(ctx, control, func(c *inspect.Cluster) bool { return members(c) == d.nodes-1 }); err != nil {
		return err
	}
	if err := d.joined(ctx, control); err != nil {
		return err
	}
	for _, part := range []func() error{d.leaveTwo, d.killTwo} {
		if err := part(); err != nil {
			return err
		}
		d.watchFor(ctx, control, meshPause)
	}
	return d.allEnd(ctx, control)
}

// meshPause is what a demo lets pass between two things that happen to nodes.
const meshPause = 3 * time.Second

// meshClient connects to the nodes as soon as one answers.
func (d *clusterShow) meshClient(ctx context.Context) (admin.Client, error) {
	o := cluster.NodeOptions{Join: d.servers[:d.nodes-1], Secret: d.secret}
	for {
		control, err := cluster.OpenClient(ctx, demoCrawl, o)
		if err == nil {
			return control, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// leaveTwo asks two nodes to leave.
func (d *clusterShow) leaveTwo() error {
	for _, p := range d.procs[1:3] {
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			return err
		}
		d.say("%s leaves", p.name)
	}
	return nil
}

// killTwo kills two nodes, one of them with its folder.
func (d *clusterShow) killTwo() error {
	for i, p := range d.procs[3:5] {
		if err := p.kill(); err != nil {
			return err
		}
		if i > 0 {
			d.say("%s is killed", p.name)
			continue
		}
		<-p.ended
		if err := os.RemoveAll(d.folderOf(p)); err != nil {
			return err
		}
		d.say("%s is killed, and its folder is lost", p.name)
	}
	return nil
}

// watchFor says for a while how it goes.
func (d *clusterShow) watchFor(ctx context.Context, control admin.Client, long time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	_ = d.until(ctx, control, func(*inspect.Cluster) bool { return false }) // what is wrong shows in the end, too
}

// allEnd waits until all nodes have ended, which they do when the crawl is done.
func (d *clusterShow) allEnd(ctx context.Context, control admin.Client) error {
	watching, stop := context.WithCancel(ctx)
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		_ = d.until(watching, control, func(*inspect.Cluster) bool { return false }) // until it is stopped, or a node fails
	}()
	defer func() { stop(); <-seen }()
	for _, p := range d.procs {
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
