package cluster

import (
	"context"
	"errors"

	"kumo/internal/node"
	"kumo/internal/wire"
)

// putAside moves what a node had that lost its place out of the way.
func (n *Node) putAside(ctx context.Context) (err error) {
	f, err := wire.OpenFolder(ctx, n.disk, &wire.Job{Dir: n.job.Dir, Warn: n.warn})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	id, err := node.OpenIdentity(n.disk, f.Path("state", wire.NodeFile), n.opts.Name)
	if err != nil {
		return err
	}
	return f.PutAside(asideName(id.Life))
}
