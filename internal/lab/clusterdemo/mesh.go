package clusterdemo

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

// Numbers of nodes for strategy mesh.
const (
	MeshNodes    = 8 // default
	MinMeshNodes = 6
)

// Mesh reports whether the strategy is mesh, which has no central node.
func (d *Demo) Mesh() bool { return cluster.IsMesh(d.Strategy) }

func (d *Demo) folderOf(p *Node) string { return filepath.Join(d.Out, p.Name) }

// meshArgs returns the flags of a mesh node. All but the first node join through the first.
func (d *Demo) meshArgs(node int) []string {
	args := []string{"--no-lan", "--allow-private"}
	if node > 0 {
		args = append(args, "--join", d.Servers[0])
	}
	return args
}

func (d *Demo) crawlMesh(ctx context.Context) (err error) {
	control, err := d.meshClient(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, control.Close()) }()
	d.Started = time.Now()
	together := func(n int) func(*inspect.Cluster) bool {
		return func(c *inspect.Cluster) bool { return c.Settled && c.Gathered.Nodes == n }
	}
	if err := d.WaitFor(ctx, control, together(d.Nodes-1)); err != nil {
		return err
	}
	if err := d.Start(ctx, control, d.Server.SeedURLs()); err != nil {
		return err
	}
	d.Started = time.Now()
	d.Logf("the crawl begins: %d nodes, %s", d.Nodes-1, d.Server.SeedURLs()[0])
	if err := d.WaitFor(ctx, control, func(c *inspect.Cluster) bool { return Members(c) == d.Nodes-1 }); err != nil {
		return err
	}
	if err := d.addNode(ctx, control); err != nil {
		return err
	}
	for _, part := range []func() error{d.leaveTwo, d.killTwo} {
		if err := part(); err != nil {
			return err
		}
		d.watch(ctx, control, meshPause)
	}
	return d.waitAll(ctx, control)
}

// meshPause is the time between two events of a demo.
const meshPause = 3 * time.Second

// meshClient connects to the nodes as soon as one answers.
func (d *Demo) meshClient(ctx context.Context) (admin.Client, error) {
	o := cluster.NodeOptions{Join: d.Servers[:d.Nodes-1], Secret: d.Secret}
	for {
		control, err := cluster.OpenClient(ctx, Crawl, o)
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

func (d *Demo) leaveTwo() error {
	for _, p := range d.Procs[1:3] {
		if err := p.Cmd.Process.Signal(os.Interrupt); err != nil {
			return err
		}
		d.Logf("%s leaves", p.Name)
	}
	return nil
}

// killTwo kills two nodes, and deletes the folder of one of them.
func (d *Demo) killTwo() error {
	for i, p := range d.Procs[3:5] {
		if err := p.Kill(); err != nil {
			return err
		}
		if i > 0 {
			d.Logf("%s is killed", p.Name)
			continue
		}
		<-p.Ended
		if err := os.RemoveAll(d.folderOf(p)); err != nil {
			return err
		}
		d.Logf("%s is killed, and its folder is lost", p.Name)
	}
	return nil
}

// watch prints changes for a while.
func (d *Demo) watch(ctx context.Context, control admin.Client, long time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	_ = d.WaitFor(ctx, control, func(*inspect.Cluster) bool { return false }) // a fault shows at the end, too
}

// waitAll waits until all nodes have ended. Nodes end when the crawl is done.
func (d *Demo) waitAll(ctx context.Context, control admin.Client) error {
	watching, stop := context.WithCancel(ctx)
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		_ = d.WaitFor(watching, control, func(*inspect.Cluster) bool { return false }) // until it is stopped, or a node fails
	}()
	defer func() { stop(); <-seen }()
	return d.wait(ctx)
}
