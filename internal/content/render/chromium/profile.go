package chromium

import (
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const (
	profilePrefix = "kumo-browser-" // of folders in the folder for temporary files
	profileLock   = "kumo.lock"     // locked by the process that uses the folder
	removeTime    = 2 * time.Second // processes that end may still write into the folder
)

// A profile is a folder for a browser's profile and temporary files.
type profile struct {
	dir  string
	lock *flock.Flock
}

// newProfile creates a folder. It also removes those of processes that were killed.
func newProfile() (*profile, error) {
	removeLeftovers()
	dir, err := os.MkdirTemp("", profilePrefix)
	if err != nil {
		return nil, err
	}
	p := &profile{dir: dir, lock: flock.New(filepath.Join(dir, profileLock))}
	if _, err := p.lock.TryLock(); err != nil {
		p.remove()
		return nil, err
	}
	return p, nil
}

// removeLeftovers removes the folders that no process has locked. Its errors are those of other users' folders.
func removeLeftovers() {
	all, _ := filepath.Glob(filepath.Join(os.TempDir(), profilePrefix+"*", profileLock))
	for _, name := range all {
		left := &profile{dir: filepath.Dir(name), lock: flock.New(name)}
		if ok, err := left.lock.TryLock(); ok && err == nil {
			left.remove()
		}
	}
}

func (p *profile) remove() {
	_ = p.lock.Unlock() // Windows removes no locked file
	for end := time.Now().Add(removeTime); os.RemoveAll(p.dir) != nil && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
}
