package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/gofrs/flock"

	"kumo/internal/base/wait"
)

// ErrLocked means that another process has locked the folder.
var ErrLocked = errors.New("another kumo is working on it")

// Two locks separate the users of a folder: one crawl, or any number of readers. A crawl waits for readers; a second
// crawl is rejected at once. The system releases the locks of a process that ends, in whatever way.
const (
	LockName = "lock" // exclusive for a crawl, shared for readers
	// Held exclusively by a crawl even while it waits for the lock. Readers pass it briefly, so that none overtakes a
	// waiting crawl.
	GateName = "gate"
)

const (
	lockRetry  = 20 * time.Millisecond // between two attempts of a crawl to lock the folder
	lockNotice = time.Second           // until a waiting crawl logs the reason
)

// LockIndex acquires the exclusive right to write the index. Close releases it.
func (f *Folder) LockIndex() error {
	if err := CheckFormat(f.Dir); err != nil {
		return err
	}
	if err := f.Disk.MkdirAll(f.Path("state")); err != nil {
		return err
	}
	f.index = f.flock("index.lock")
	return f.lockError(f.index.TryLock())
}

func (f *Folder) flock(name string, opts ...flock.Option) *flock.Flock {
	return flock.New(f.Path("state", name), opts...)
}

// Lock locks the folder for a crawl. It warns if it has to wait long.
func (f *Folder) Lock(ctx context.Context, warn func(error)) error {
	f.gate, f.lock = f.flock(GateName), f.flock(LockName)
	for begin, said := time.Now(), false; ; {
		if ok, err := f.tryLock(); ok || err != nil {
			return err
		}
		if !said && time.Since(begin) >= lockNotice {
			warn(fmt.Errorf("waiting for a reader of %s to end: kumo explain, hosts, queue, seen or verify", f.Dir))
			said = true
		}
		if wait.For(ctx, lockRetry) != nil {
			return errors.Join(ctx.Err(), f.Close())
		}
	}
}

// tryLock returns false if there are readers. The gate remains locked for the next attempt.
func (f *Folder) tryLock() (bool, error) {
	ok, err := f.gate.TryLock()
	if err == nil && !ok {
		return false, f.checkGate()
	}
	if err == nil {
		ok, err = f.lock.TryLock()
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("lock %s: %w", f.Dir, err), f.Close())
	}
	return ok, err
}

// checkGate returns ErrLocked if a crawl holds the gate, and nil if a reader is just passing it.
func (f *Folder) checkGate() error {
	gate := f.flock(GateName)
	if err := f.lockError(gate.TryRLock()); err != nil {
		return err
	}
	return gate.Unlock()
}

// Share locks the folder for reading, unless a crawl has locked it or waits for it. It writes nothing unless flag is
// os.O_CREATE.
func (f *Folder) Share(flag int) error {
	if err := CheckFormat(f.Dir); err != nil {
		return err
	}
	gate := f.flock(GateName, flock.SetFlag(os.O_RDONLY)) // if the file does not exist, no crawl waits
	if ok, err := gate.TryRLock(); !errors.Is(err, fs.ErrNotExist) && f.lockError(ok, err) != nil {
		return f.lockError(ok, err)
	}
	f.lock = f.flock(LockName, flock.SetFlag(os.O_RDONLY|flag))
	err := f.lockError(f.lock.TryRLock())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // a crawl would have created the file
	}
	return errors.Join(err, gate.Unlock())
}

// WantedByCrawl reports whether a crawl has locked the folder or waits for it. Readers should then end.
func (f *Folder) WantedByCrawl() bool {
	gate := f.flock(GateName, flock.SetFlag(os.O_RDONLY))
	ok, err := gate.TryRLock()
	if err != nil {
		return false
	}
	if ok {
		_ = gate.Unlock() // it was only probed
	}
	return !ok
}

// lockError returns the error for the result of an attempt to lock the folder.
func (f *Folder) lockError(ok bool, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("lock %s: %w", f.Dir, err)
	case !ok:
		return fmt.Errorf("%s: %w", f.Dir, ErrLocked)
	}
	return nil
}

// Close releases the locks.
func (f *Folder) Close() (err error) {
	// in this order: no one passes the gate before the lock is free
	for _, l := range []*flock.Flock{f.index, f.lock, f.gate} {
		if l != nil {
			err = errors.Join(err, l.Unlock())
		}
	}
	return err
}
