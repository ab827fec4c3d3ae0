package nodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"kumo/internal/app/folder"
	"kumo/internal/app/node"
	"kumo/internal/base/stats"
	"kumo/internal/content/policy"
)

// A nodeFolder is the location of a node's folder. If the node never becomes a member, its files there are deleted.
type nodeFolder struct {
	dir           string
	created       bool        // did not exist before this process
	createdParent string      // the parent folder, if it did not exist either
	keep          atomic.Bool // the node is, or was, a member, so its data must be kept
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

// clear deletes the files of this process, except the given folder.
func (h *nodeFolder) clear(but ...string) error {
	if !h.created {
		return nil
	}
	if len(but) == 0 {
		err := os.RemoveAll(h.dir)
		if h.createdParent != "" {
			_ = os.Remove(h.createdParent) // fails if it has other files
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

// clear deletes the files of a rejected node. The node's server, if it runs one, keeps its part of the cluster's data.
func (n *Node) clear() error {
	if n.cluster.Address() != "" {
		return n.home.clear(n.ServerDir)
	}
	return n.home.clear()
}

// refused reports whether a node ended that was never a member, for a reason other than a request to end.
func (n *Node) refused(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !n.leaving.Load() && !n.home.keep.Load() && !isEnd(err)
}

// isEnd reports whether a node ended as requested, or can restart as another one.
func isEnd(err error) bool {
	return errors.Is(err, node.ErrStopped) || errors.Is(err, node.ErrLeft) || errors.Is(err, node.ErrLost) ||
		errors.Is(err, policy.ErrLimit)
}

// moveAside moves the files of a node that lost its place into a subfolder.
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

// logRestart logs why this node joins as another one. A node that left, and has started again, was not declared dead.
func (n *Node) logRestart(why error) {
	last, err := folder.ReadReport(n.job.Dir)
	if err == nil && last != nil && last.Ended == node.EndReason(node.ErrLeft) {
		n.Log.Info("this node left the crawl earlier: it joins again as a new node, and its earlier records are in " +
			"the folder lost below its own")
		n.warnUnsent(last.Sinks)
		return
	}
	n.Log.Warn("this node restarts as another one", "why", why)
}

// warnUnsent logs which records of a node that left were not sent. The others do not have their pages fetched again, as
// those of a dead node.
func (n *Node) warnUnsent(sinks []stats.Sink) {
	id, err := node.OpenIdentity(n.disk, filepath.Join(n.job.Dir, "state", folder.NodeFile), n.Name)
	if err != nil {
		return // moveAside returns the error
	}
	for i := range sinks {
		if s := &sinks[i]; s.Waiting > 0 {
			n.Log.Warn("the sink lacks records from before this node left", "sink", s.Sink, "records", s.Waiting, "do",
				fmt.Sprintf("kumo export --to %s %s", s.Sink, filepath.Join(n.job.Dir, lostFolder(id.Incarnation))))
		}
	}
}

// lostFolder returns the subfolder for the files of a node that lost its place.
func lostFolder(life string) string { return filepath.Join("lost", life) }
