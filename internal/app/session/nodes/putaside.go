package nodes

import (
	"context"
	"errors"
	"path/filepath"

	"kumo/internal/app/folder"
	"kumo/internal/app/node"
)

// putAside moves what a node had that lost its place out of the way.
func (n *Node) putAside(ctx context.Context) (err error) {
	f, err := folder.Open(ctx, n.disk, n.job.Dir, folder.Options{Warn: n.warn})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	id, err := node.OpenIdentity(n.disk, f.Path("state", folder.NodeFile), n.Name)
	if err != nil {
		return err
	}
	return f.PutAside(asideName(id.Life))
}

// asideName is where the folder keeps what nodes had that lost their place.
func asideName(life string) string { return filepath.Join("lost", life) }
