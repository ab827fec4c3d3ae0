package nodes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"kumo/internal/app/folder"
	"kumo/internal/app/node"
	"kumo/internal/content/policy"
)

// A home is where a node's folder is to be. What a node has made there that was never taken in is removed again.
type nodeFolder struct {
	dir           string
	created       bool        // there was nothing before this process
	createdParent string      // the folder that the folder is in, if that was not there, either
	keep          atomic.Bool // the node is, or was, a member: what it has is worth keeping
}

func findHome(dir string) *nodeFolder {
	isNew := func(name string) bool {
		_, err := os.Stat(name)
		return errors.Is(err, fs.ErrNotExist)
	}
	h := &nodeFolder{dir: dir, created: isNew(dir)}
	if above := filepath.Dir(filepath.Clean(dir)); h.created && isNew(above) {
		h.createdParent = above
	}
	return h
}

// clear removes what this process has made, but for the folders named.
func (h *nodeFolder) clear(but ...string) error {
	if !h.created {
		return nil
	}
	if len(but) == 0 {
		err := os.RemoveAll(h.dir)
		if h.createdParent != "" {
			_ = os.Remove(h.createdParent) // unless somebody else has put something there
		}
		return err
	}
	all, err := os.ReadDir(h.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range all {
		if e.Name() != but[0] {
			err = errors.Join(err, os.RemoveAll(filepath.Join(h.dir, e.Name())))
		}
	}
	return err
}

// clear removes what a node has made that was refused. Its server, if it runs one, has a part of what the nodes share,
// and keeps it.
func (n *Node) clear() error {
	if n.cluster.Address() != "" {
		return n.home.clear(n.ServerDir)
	}
	return n.home.clear()
}

// refused reports whether a node ends that was never taken in, for a reason that it did not choose.
func (n *Node) refused(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !n.leaving.Load() && !n.home.keep.Load() && !isEnd(err)
}

// isEnd reports whether a node ended as it was told to, or can begin again as another one.
func isEnd(err error) bool {
	return errors.Is(err, node.ErrStopped) || errors.Is(err, node.ErrLeft) || errors.Is(err, node.ErrLost) ||
		errors.Is(err, policy.ErrLimit)
}

// moveAside moves what a node had that lost its place out of the way.
func (n *Node) moveAside(ctx context.Context) (err error) {
	f, err := folder.Open(ctx, n.disk, n.job.Dir, folder.Options{Warn: n.warn})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	id, err := node.OpenIdentity(n.disk, f.Path("state", folder.NodeFile), n.Name)
	if err != nil {
		return err
	}
	return f.MoveAside(lostFolder(id.Incarnation))
}

// lostFolder is where the folder keeps what nodes had that lost their place.
func lostFolder(life string) string { return filepath.Join("lost", life) }
