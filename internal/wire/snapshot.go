package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kumo/internal/advice"
	"kumo/internal/crawl"
	"kumo/internal/folder"
	"kumo/internal/inspect"
	"kumo/internal/journal"
	"kumo/internal/journal/file"
	"kumo/internal/settings"
	"kumo/internal/store"
	"kumo/internal/vfs"
)

// SnapshotName is where a snapshot of the crawl in dir goes unless the user says otherwise.
func SnapshotName(dir string, now time.Time) string {
	return filepath.Clean(dir) + ".snapshot-" + now.UTC().Format("20060102T150405Z")
}

// Snapshot copies the crawl in dir, as it is at one moment, into the new folder target. A crawl that runs there makes the copy itself, and
// goes on meanwhile. The copy is a crawl that can be gone on with.
func Snapshot(ctx context.Context, dir, target string, progress func(inspect.Copied)) error {
	target, err := filepath.Abs(target)
	if err != nil {
		return err
	}
	f := folder.At(dir, vfs.OS)
	if !f.IsCrawl() {
		return nothingIn(dir)
	}
	if f.IsNodes() {
		return advice.Usage("%s belongs to a node of a cluster: a copy would be a second node of the same name. What a node has, the others "+
			"take over if its disk is lost; its record files can be copied once they are closed (warc/*.gz without .open)", dir)
	}
	patience, done := context.WithTimeout(ctx, lookPatience)
	defer done()
	for {
		err := snapshot(ctx, f, target, progress)
		if !errors.Is(err, folder.ErrLocked) && !errors.Is(err, inspect.ErrGone) && (err == nil || !strings.Contains(err.Error(), crawl.ErrEnding.Error())) {
			return err
		}
		select {
		case <-patience.Done():
			return fmt.Errorf("a crawl is just starting or ending there: try again in a moment (%w)", err)
		case <-time.After(lookAgain):
		}
	}
}

// snapshot asks for the folder first: only where a crawl has it, there is somebody to make the copy.
func snapshot(ctx context.Context, f *folder.Folder, target string, progress func(inspect.Copied)) error {
	err := f.Share(os.O_CREATE)
	if errors.Is(err, folder.ErrLocked) {
		client, err := inspect.Dial(ctx, f.Path(folder.EndpointName))
		if err != nil {
			return err
		}
		defer client.Close() //nolint:errcheck // an idle connection
		for n, err := range client.Snapshot(ctx, target) {
			if err != nil {
				return err
			}
			progress(n)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only shared
	return into(target, func(part string) error {
		c := &copying{ctx: ctx, disk: f.Disk, from: f.Dir, to: part, tell: func(n inspect.Copied) bool { progress(n); return true }}
		return c.all()
	})
}

// into makes a folder under a name of its own first, so that there is no half of one under its final name.
func into(target string, fill func(part string) error) error {
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		return advice.Usage("%s is there already: name a new folder", target)
	}
	part := target + ".part"
	if err := os.Mkdir(part, 0o755); err != nil {
		return fmt.Errorf("make the snapshot's folder: %w", err)
	}
	err := fill(part)
	if err == nil {
		err = vfs.OS.Rename(part, target)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	return nil
}

// Snapshot is inspect.Snapshooter's.
func (c source) Snapshot(ctx context.Context, target string) iter.Seq2[inspect.Copied, error] {
	return func(yield func(inspect.Copied, error) bool) {
		if c.peers != nil {
			yield(inspect.Copied{}, errors.New("the folder is that of a node of a cluster"))
			return
		}
		left := false // by who asked
		err := into(target, func(part string) error {
			k := &copying{disk: c.disk, from: c.Job.Dir, to: part, tell: func(n inspect.Copied) bool {
				left = left || !yield(n, nil)
				return !left
			}}
			err := c.engine.Snapshot(ctx, func(ctx context.Context, at journal.Position, marks []store.Mark) error {
				k.ctx = ctx
				return k.moment(at, marks)
			})
			if err != nil {
				return err
			}
			k.ctx = ctx
			return k.rest()
		})
		if err != nil && !left {
			yield(inspect.Copied{}, err)
		}
	}
}

// A copying copies a crawl's folder.
type copying struct {
	ctx      context.Context
	disk     vfs.FS
	from, to string
	tell     func(inspect.Copied) bool // false: nobody wants it any more
	done     inspect.Copied
	told     int64

	final []string // WARC files and their indexes, which do not change any more
	logs  []store.Mark
}

// isLog reports whether a file is one of those at the top of a folder, which keep one name from first to last.
func isLog(name string) bool { return !strings.Contains(name, "/") && !strings.Contains(name, `\`) }

// moment copies what has to be of one moment: the state, and the record files that grow. What only grows at its end, or never changes, is
// left for later.
func (c *copying) moment(at journal.Position, marks []store.Mark) error {
	parts, err := file.Parts(c.disk, filepath.Join(c.from, "state", "journal"), at)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := c.copy(filepath.Join("state", "journal", p.Name), p.Length); err != nil {
			return err
		}
	}
	for _, room := range []string{"seen", "digests", "frontier", "shelf", "robots"} {
		if err := c.room(filepath.Join("state", room)); err != nil {
			return err
		}
	}
	names, err := c.disk.List(filepath.Join(c.from, "warc"))
	if err != nil {
		return err
	}
	here := map[string]bool{}
	for _, name := range names {
		here["warc/"+name] = true
		if !strings.HasSuffix(name, ".open") && !strings.HasSuffix(name, ".tmp") {
			c.final = append(c.final, filepath.Join("warc", name))
		}
	}
	for _, m := range marks {
		switch {
		case isLog(m.Name):
			c.logs = append(c.logs, m)
		case strings.HasPrefix(m.Name, "warc/") && !here[m.Name]: // closed
		default:
			if err := c.copy(filepath.FromSlash(m.Name), m.Length); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{settings.Name, filepath.Join("state", settings.Name), "report.json", "index.cdxj"} {
		if err := c.copy(name, -1); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// rest copies what the moment has left.
func (c *copying) rest() error {
	for _, m := range c.logs {
		if err := c.copy(m.Name, m.Length); err != nil {
			return err
		}
	}
	for _, name := range c.final {
		if err := c.share(name); err != nil && !errors.Is(err, fs.ErrNotExist) { // moved away meanwhile
			return err
		}
	}
	return c.say(true)
}

// room copies the files of a folder of the state. Those that go meanwhile are not needed.
func (c *copying) room(dir string) error {
	names, err := c.disk.List(filepath.Join(c.from, dir))
	for _, name := range names {
		if err != nil {
			return err
		}
		switch name = filepath.Join(dir, name); {
		case strings.HasSuffix(name, ".new") || strings.HasSuffix(name, ".tmp"):
		case strings.HasSuffix(name, ".run"):
			err = c.share(name)
		default:
			err = c.copy(name, -1)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return err
}

// all copies a folder in which nobody works.
func (c *copying) all() error {
	for _, dir := range []string{"", "warc", "state", "state/journal", "state/seen", "state/digests", "state/frontier", "state/shelf", "state/robots"} {
		names, err := c.disk.List(filepath.Join(c.from, dir))
		if err != nil {
			return err
		}
		for _, name := range names {
			name = filepath.Join(filepath.FromSlash(dir), name)
			switch {
			case name == folder.EndpointName || name == filepath.Join("state", folder.LockName) || name == filepath.Join("state", folder.GateName):
			case dir == "warc" && !strings.HasSuffix(name, ".open"), strings.HasSuffix(name, ".run"):
				err = c.share(name)
			default:
				err = c.copy(name, -1)
			}
			if err != nil {
				return err
			}
		}
	}
	return c.say(true)
}

// share gives a file that never changes a second name, or copies it where that cannot be.
func (c *copying) share(name string) error {
	from, to := filepath.Join(c.from, name), filepath.Join(c.to, name)
	if err := c.disk.MkdirAll(filepath.Dir(to)); err != nil {
		return err
	}
	size, err := c.disk.Size(from)
	if err != nil {
		return err
	}
	if !vfs.Link(c.disk, from, to) {
		return c.copy(name, -1)
	}
	c.done.Files++
	c.done.Bytes += size
	return c.say(false)
}

const copyStep = 1 << 20 // bytes between two looks at the context

// copy copies a file's first bytes, or all of them if length is negative, and makes the copy durable.
func (c *copying) copy(name string, length int64) (err error) {
	src, err := c.disk.Open(filepath.Join(c.from, name))
	if errors.Is(err, fs.ErrNotExist) && length == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	to := filepath.Join(c.to, name)
	if err := c.disk.MkdirAll(filepath.Dir(to)); err != nil {
		return err
	}
	dst, err := c.disk.Append(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	in := io.Reader(src)
	if length >= 0 {
		in = io.LimitReader(src, length)
	}
	var n int64
	for {
		more, err := io.CopyN(dst, in, copyStep)
		n += more
		c.done.Bytes += more
		if errors.Is(err, io.EOF) {
			break
		}
		if err = errors.Join(err, c.say(false)); err != nil {
			return err
		}
	}
	if n < length {
		return vfs.Invalidf("%s has %d bytes, but %d were written to it", filepath.Join(c.from, name), n, length)
	}
	c.done.Files++
	return dst.Sync()
}

// say tells how far it is.
func (c *copying) say(always bool) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if always || c.done.Bytes-c.told >= 16<<20 || c.told == 0 {
		if c.told = c.done.Bytes; !c.tell(c.done) {
			return context.Canceled
		}
	}
	return nil
}
