package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"kumo/internal/node"
)

// putAside moves what a node had that lost its place out of the way: its records are good, and stay in a folder of their own; its state
// is worth nothing any more. The state goes last: as long as it is there, the next process finds out again that it is lost.
func (n *ClusterNode) putAside(ctx context.Context) (err error) {
	f, err := openFolder(ctx, n.disk, &Job{Dir: n.job.Dir, Warn: n.warn})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	id, err := node.OpenIdentity(n.disk, f.path("state"), n.opts.Name)
	if err != nil {
		return err
	}
	to := f.path(asideName(id.Life))
	if err := n.disk.MkdirAll(filepath.Join(to, "state")); err != nil {
		return err
	}
	names := slices.Concat(outputs, []string{"warc", settingsName})
	entries, err := os.ReadDir(f.path("state"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != lockName && e.Name() != gateName && e.Name() != node.IdentityName {
			names = append(names, filepath.Join("state", e.Name()))
		}
	}
	for _, name := range append(names, filepath.Join("state", node.IdentityName)) {
		if err := os.Rename(f.path(name), filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("put aside what a node had that lost its place: %w", err)
		}
	}
	return errors.Join(n.disk.SyncDir(filepath.Join(to, "state")), n.disk.SyncDir(to), n.disk.SyncDir(f.path("state")), n.disk.SyncDir(f.dir))
}
