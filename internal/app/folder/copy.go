package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kumo/internal/app/inspect"
	"kumo/internal/archive/away"
	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

// Make fills a folder under a temporary name and then renames it, so that target is never incomplete.
func Make(target string, fill func(part string) error) error {
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		return advice.Usage("%s already exists: name a new folder", target)
	}
	part := target + ".part"
	if err := os.Mkdir(part, 0o755); err != nil {
		return fmt.Errorf("create the snapshot's folder: %w", err)
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

// A Copy copies a crawl's folder. It must be used by one goroutine at a time.
type Copy struct {
	ctx      context.Context
	disk     vfs.FS
	from, to string
	progress func(inspect.Copied) bool // returns false to cancel the copy
	done     inspect.Copied
	reported int64

	final []string // WARC files and their indexes, which no longer change
	logs  []store.Mark
}

// NewCopy returns a Copy of the folder f into the existing folder to. It calls progress repeatedly, which returns false
// to cancel the copy.
func NewCopy(f *Folder, to string, tell func(inspect.Copied) bool) *Copy {
	return &Copy{ctx: context.Background(), disk: f.Disk, from: f.Dir, to: to, progress: tell}
}

// A Part is the beginning of a file in the journal's folder.
type Part struct {
	Name   string
	Length int64
}

// CopyMutable copies the files that must be of one moment: the state and growing record files. It leaves files that are
// only appended to, or never change, to CopyImmutable.
func (c *Copy) CopyMutable(ctx context.Context, journal []Part, marks []store.Mark) error {
	c.ctx = ctx
	for _, p := range journal {
		if err := c.copy(filepath.Join("state", "journal", p.Name), p.Length); err != nil {
			return err
		}
	}
	for _, room := range []string{"seen", "digests", "frontier", "abandoned", "robots"} {
		if err := c.copyStateDir(filepath.Join("state", room)); err != nil {
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
		case !strings.ContainsAny(m.Name, `/\`): // a list at the top of the folder, which is never renamed
			c.logs = append(c.logs, m)
		case strings.HasPrefix(m.Name, "warc/") && !here[m.Name]: // closed since
		default:
			if err := c.copy(filepath.FromSlash(m.Name), m.Length); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{FormatName, settings.Name, filepath.Join("state", settings.Name), "report.json",
		"index.cdxj", "external.jsonl", filepath.Join("state", "rank", "key")} {
		if err := c.copy(name, -1); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// CopyImmutable copies the files that CopyMutable left.
func (c *Copy) CopyImmutable(ctx context.Context) error {
	c.ctx = ctx
	for _, m := range c.logs {
		if err := c.copy(m.Name, m.Length); err != nil {
			return err
		}
	}
	for _, name := range c.final {
		if err := c.Link(name); err != nil && !errors.Is(err, fs.ErrNotExist) { // moved away since
			return err
		}
	}
	// The list of uploaded files, as of now: files removed here during the copy have been uploaded.
	for _, name := range []string{away.LinkName, away.LogName} {
		if err := c.copy(name, -1); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return c.report(true)
}

// copyStateDir copies the files of a folder of the state. Files that disappear during the copy are not needed.
func (c *Copy) copyStateDir(dir string) error {
	names, err := c.disk.List(filepath.Join(c.from, dir))
	for _, name := range names {
		if err != nil {
			return err
		}
		switch name = filepath.Join(dir, name); {
		case strings.HasSuffix(name, ".new") || strings.HasSuffix(name, ".tmp"):
		case strings.HasSuffix(name, ".run"):
			err = c.Link(name)
		default:
			err = c.copy(name, -1)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return err
}

// All copies a folder that no process writes to.
func (c *Copy) All(ctx context.Context) error {
	c.ctx = ctx
	for _, dir := range []string{"", "warc", "state", "state/journal", "state/seen", "state/digests", "state/frontier",
		"state/abandoned", "state/robots", "state/rank"} {
		names, err := c.disk.List(filepath.Join(c.from, dir))
		if err != nil {
			return err
		}
		for _, name := range names {
			name = filepath.Join(filepath.FromSlash(dir), name)
			switch {
			case name == EndpointName || name == UIName || name == OpenName || name == filepath.Join("state", LockName) ||
				name == filepath.Join("state", GateName):
			case dir == "warc" && !strings.HasSuffix(name, ".open"), strings.HasSuffix(name, ".run"):
				err = c.Link(name)
			default:
				err = c.copy(name, -1)
			}
			if err != nil {
				return err
			}
		}
	}
	return c.report(true)
}

// Link hard-links a file that never changes, or copies it where links are not possible.
func (c *Copy) Link(name string) error {
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
	return c.report(false)
}

// File copies a file and syncs the copy.
func (c *Copy) File(name string) error { return c.copy(name, -1) }

const copyStep = 1 << 20 // bytes between two checks of the context

// copy copies the first length bytes of a file, or all of it if length is negative, and syncs the copy.
func (c *Copy) copy(name string, length int64) (err error) {
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
		if err = errors.Join(err, c.report(false)); err != nil {
			return err
		}
	}
	if n < length {
		return vfs.Invalidf("%s has %d bytes, but %d were written to it", filepath.Join(c.from, name), n, length)
	}
	c.done.Files++
	return dst.Sync()
}

func (c *Copy) report(always bool) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if always || c.done.Bytes-c.reported >= 16<<20 || c.reported == 0 {
		if c.reported = c.done.Bytes; !c.progress(c.done) {
			return context.Canceled
		}
	}
	return nil
}
