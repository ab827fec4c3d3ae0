package repair

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kumo/internal/app/folder"
	"kumo/internal/base/settings"
	"kumo/internal/base/vfs"
	"kumo/internal/state/statefile"
)

// Files in the work folder that record the progress of the installation.
const (
	readyName = "ready" // everything is built
	movedName = "moved" // the replaced files have been moved away
)

// stateNames returns the files of the state that will be replaced.
func (r *repairer) stateNames() []string {
	names := []string{filepath.Join("state", "deferred"), filepath.Join("state", "roots"), statefile.RobotsAnswersName}
	for _, room := range []string{"frontier", "seen", "digests", "robots", "journal", "abandoned"} {
		here, _ := vfs.OS.List(r.Path("state", room))
		for _, name := range here {
			names = append(names, filepath.Join("state", room, name))
		}
	}
	return names
}

// install moves the built files into place. If it is interrupted, another repair continues it.
func (r *repairer) install() error {
	mark := func(name, text string) error { return folder.At(r.work, vfs.OS).Replace(name, []byte(text)) }
	ready, err := vfs.ReadFile(vfs.OS, filepath.Join(r.work, readyName), maxReady)
	if errors.Is(err, fs.ErrNotExist) {
		if r.restored != nil {
			if err := folder.At(r.work, vfs.OS).Replace(settings.Name, r.restored); err != nil {
				return err
			}
		}
		if err := r.dropUnchanged(); err != nil {
			return err
		}
		away, err := r.filesToMove()
		if err != nil {
			return err
		}
		ready, err = json.Marshal(installPlan{r.damagedName(), away})
		if err != nil {
			return err
		}
		if err := mark(readyName, string(ready)); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	var p installPlan
	if err := json.Unmarshal(ready, &p); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(r.work, readyName), err)
	}
	if err := p.check(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(r.work, readyName), err)
	}
	r.result.Damaged = r.Path("state", filepath.Base(p.Damaged)) // the folder may have been moved since
	if _, err := os.Stat(filepath.Join(r.work, movedName)); err != nil {
		if err := r.moveAway(p.Away); err != nil {
			return err
		}
		if err := mark(movedName, "\n"); err != nil {
			return err
		}
	}
	if err := r.moveIntoPlace(); err != nil {
		return err
	}
	return os.RemoveAll(r.work)
}

type installPlan struct {
	Damaged string
	Away    []string
}

const maxReady = 1 << 30 // bytes: a name for each file of the crawl

// check returns an error if the plan would move files from outside the crawl's folder, or into a folder that is not a
// repair's: the plan may come from an untrusted source, like the folder.
func (p *installPlan) check() error {
	if !strings.HasPrefix(filepath.Base(p.Damaged), damagedPrefix) {
		return fmt.Errorf("%q is not a folder of a repair", p.Damaged)
	}
	for _, name := range p.Away {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("%q is not a file of the crawl", name)
		}
	}
	return nil
}

// dropUnchanged removes the unchanged files from the work folder.
func (r *repairer) dropUnchanged() error {
	return r.eachBuilt(func(name string) error {
		was, err := os.Stat(r.Path(name))
		if err != nil {
			return nil //nolint:nilerr // it is new
		}
		is, err := os.Stat(filepath.Join(r.work, name))
		if err == nil && os.SameFile(was, is) {
			err = os.Remove(filepath.Join(r.work, name))
		}
		return err
	})
}

func (r *repairer) filesToMove() ([]string, error) {
	names := append(r.stateNames(), "report.json", "index.cdxj")
	names = append(names, r.orphans...)
	open, err := vfs.OS.List(r.Path("warc"))
	if err != nil {
		return nil, err
	}
	for _, name := range open {
		if strings.HasSuffix(name, ".open") {
			names = append(names, filepath.Join("warc", name))
		}
	}
	err = r.eachBuilt(func(name string) error {
		names = append(names, name)
		return nil
	})
	return names, err
}

func (r *repairer) eachBuilt(f func(name string) error) error {
	return filepath.WalkDir(r.work, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(r.work, path)
		if err != nil || name == readyName || name == movedName {
			return err
		}
		return f(name)
	})
}

func (r *repairer) moveAway(names []string) error {
	for _, name := range names {
		to := filepath.Join(r.result.Damaged, name)
		if err := vfs.OS.MkdirAll(filepath.Dir(to)); err != nil {
			return err
		}
		if err := os.Rename(r.Path(name), to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return r.syncAll()
}

func (r *repairer) moveIntoPlace() error {
	err := r.eachBuilt(func(name string) error {
		if err := vfs.OS.MkdirAll(filepath.Dir(r.Path(name))); err != nil {
			return err
		}
		return vfs.OS.Rename(filepath.Join(r.work, name), r.Path(name))
	})
	return errors.Join(err, r.syncAll())
}

// syncAll makes the moves durable.
func (r *repairer) syncAll() (err error) {
	for _, dir := range []string{"", "warc", "state", "state/journal", "state/seen", "state/digests", "state/frontier"} {
		if _, there := os.Stat(r.Path(dir)); there == nil {
			err = errors.Join(err, vfs.OS.SyncDir(r.Path(dir)))
		}
	}
	return err
}

const damagedPrefix = "damaged-" // prefix of the folders for replaced files

func (r *repairer) damagedName() string {
	return r.Path("state", damagedPrefix+r.Now().UTC().Format("20060102T150405Z"))
}
