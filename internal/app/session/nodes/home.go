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
type home struct {
	dir   string
	fresh bool        // there was nothing before this process
	above string      // the folder that the folder is in, if that was not there, either
	kept  atomic.Bool // the node is, or was, a member: what it has is worth keeping
}

func findHome(dir string) *home {
	isNew := func(name string) bool {
		_, err := os.Stat(name)
		return errors.Is(err, fs.ErrNotExist)
	}
	h := &home{dir: dir, fresh: isNew(dir)}
	if above := filepath.Dir(filepath.Clean(dir)); h.fresh && isNew(above) {
		h.above = above
	}
	return h
}

// clear removes what this process has made, but for the folders named.
func (h *home) clear(but ...string) error {
	if !h.fresh {
		return nil
	}
	if len(but) == 0 {
		err := os.RemoveAll(h.dir)
		if h.above != "" {
			_ = os.Remove(h.above) // unless somebody else has put something there
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
	return err != nil && ctx.Err() == nil && !n.leaving.Load() && !n.home.kept.Load() && !isEnd(err)
}

// isEnd reports whether a node ended as it was told to, or can begin again as another one.
func isEnd(err error) bool {
	return errors.Is(err, node.ErrStopped) || errors.Is(err, node.ErrLeft) || errors.Is(err, node.ErrLost) ||
		errors.Is(err, policy.ErrLimit)
}

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
