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

// ErrLocked is a folder that another kumo works on.
var ErrLocked = errors.New("another kumo is working on it")

// Two locks in a folder keep those who use it apart: one crawl, or any number of looks, which only read. A crawl that
// finds looks there waits for them, and a second crawl is refused at once. Locks go with their process, however it
// ends.
const (
	LockName = "lock" // of a crawl alone, or of looks together: who is in
	// of a crawl alone, from before it waits for the lock; a look passes through, so that none overtakes the crawl
	GateName = "gate"
)

const (
	lockRetry  = 20 * time.Millisecond // until a crawl tries again to get in
	lockNotice = time.Second           // until it says what it waits for
)

// LockIndex takes the right to write the index, which one process has at a time. It is let go by Close.
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

// Lock takes the folder for a crawl. It says so when it has to wait long.
func (f *Folder) Lock(ctx context.Context, warn func(error)) error {
	f.gate, f.lock = f.flock(GateName), f.flock(LockName)
	for begin, said := time.Now(), false; ; {
		if ok, err := f.tryLock(); ok || err != nil {
			return err
		}
		if !said && time.Since(begin) >= lockNotice {
			warn(fmt.Errorf("waiting for a look into %s to end: kumo explain, hosts, queue, seen or verify", f.Dir))
			said = true
		}
		if wait.For(ctx, lockRetry) != nil {
			return errors.Join(ctx.Err(), f.Close())
		}
	}
}

// tryLock reports false where looks are in the way. Who has the gate has it still when it tries again.
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

// checkGate returns ErrLocked if it is a crawl that has the gate, and not a look that is just passing.
func (f *Folder) checkGate() error {
	gate := f.flock(GateName)
	if err := f.lockError(gate.TryRLock()); err != nil {
		return err
	}
	return gate.Unlock()
}

// Share takes the folder for a look, if no crawl has it or waits for it. Nothing is written unless flag is os.O_CREATE.
func (f *Folder) Share(flag int) error {
	if err := CheckFormat(f.Dir); err != nil {
		return err
	}
	gate := f.flock(GateName, flock.SetFlag(os.O_RDONLY)) // where there is none, no crawl waits
	if ok, err := gate.TryRLock(); !errors.Is(err, fs.ErrNotExist) && f.lockError(ok, err) != nil {
		return f.lockError(ok, err)
	}
	f.lock = f.flock(LockName, flock.SetFlag(os.O_RDONLY|flag))
	err := f.lockError(f.lock.TryRLock())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // no crawl has the folder that has not made it
	}
	return errors.Join(err, gate.Unlock())
}

// WantedByCrawl reports whether a crawl has the folder or waits for it: looks that have it should end.
func (f *Folder) WantedByCrawl() bool {
	gate := f.flock(GateName, flock.SetFlag(os.O_RDONLY))
	ok, err := gate.TryRLock()
	if err != nil {
		return false
	}
	if ok {
		_ = gate.Unlock() // what was only looked at
	}
	return !ok
}

// lockError says what came of locking the folder.
func (f *Folder) lockError(ok bool, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("lock %s: %w", f.Dir, err)
	case !ok:
		return fmt.Errorf("%s: %w", f.Dir, ErrLocked)
	}
	return nil
}

// Close lets the folder go.
func (f *Folder) Close() (err error) {
	for _, l := range []*flock.Flock{f.index, f.lock, f.gate} { // nobody passes the gate before the lock is free
		if l != nil {
			err = errors.Join(err, l.Unlock())
		}
	}
	return err
}
