package vfstest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
)

// ErrDead is returned by every call after the crash that [Faulty.DieAfter] sets.
var ErrDead = errors.New("the process is dead")

// callCost is the number of bytes that a call which writes no data counts for. So a crash can also happen between such
// calls.
const callCost = 256

// DieAfter sets a crash after n more written bytes. A sync, and a change of names or lengths, counts as 256 bytes. The
// write that exceeds the limit is torn. From then on every call fails, as if the process had been killed.
func (d *Faulty) DieAfter(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.life, d.dies = n, true
}

// Dead reports whether the crash has happened.
func (d *Faulty) Dead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead()
}

func (d *Faulty) dead() bool { return d.dies && d.life <= 0 }

// chargeCall charges a call that writes no data. The caller holds mu. If it causes the crash, the call fails, and
// PowerLoss may execute done: the machine goes down during the call.
func (d *Faulty) chargeCall(done func() error) error {
	if d.dead() {
		return ErrDead
	}
	if d.life -= callCost; d.dead() {
		d.halfDone = done
		return ErrDead
	}
	return nil
}

// A removedFile is a file whose removal is not durable.
type removedFile struct {
	name string
	data []byte
}

// PowerLoss changes the disk below to a state that a machine may find after a power failure. Each file keeps a random
// part of its unsynced data, with holes. A file that was never synced may be missing, a removed file may be back, and
// the call during which the process died may be done.
func (d *Faulty) PowerLoss(dice *rand.Rand) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, synced := range d.synced {
		if err := d.lose(dice, name, synced); err != nil {
			return fmt.Errorf("drop unsynced data of %s: %w", name, err)
		}
	}
	clear(d.synced)
	if d.halfDone != nil && dice.IntN(2) == 0 {
		if err := d.halfDone(); err != nil {
			return fmt.Errorf("finish the interrupted call: %w", err)
		}
	}
	d.halfDone = nil
	return d.restoreRemoved(dice)
}

// restoreRemoved restores some of the removed files.
func (d *Faulty) restoreRemoved(dice *rand.Rand) error {
	ghosts := d.removed
	d.removed = nil
	for _, g := range ghosts {
		if _, err := d.FS.Size(g.name); err == nil || dice.IntN(2) == 0 {
			continue
		}
		f, err := d.FS.Append(g.name)
		if err != nil {
			return err
		}
		_, err = f.Write(g.data)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (d *Faulty) lose(dice *rand.Rand, name string, synced int64) error {
	size, err := d.FS.Size(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || size <= max(synced, 0):
		return err
	case synced < 0 && dice.IntN(2) == 0:
		return d.FS.Remove(name)
	}
	synced = max(synced, 0)
	tail, err := d.bytes(name, synced, size)
	if err != nil {
		return err
	}
	tail = tail[:dice.IntN(len(tail)+1)]
	for holes := dice.IntN(4); holes > 0 && len(tail) > 0; holes-- {
		from := dice.IntN(len(tail))
		clear(tail[from : from+dice.IntN(len(tail)-from)]) // a later page was written, but not this one
	}
	if err := d.FS.Truncate(name, synced); err != nil {
		return err
	}
	f, err := d.FS.Append(name)
	if err != nil {
		return err
	}
	_, err = f.Write(tail)
	return errors.Join(err, f.Close())
}

// bytes returns the bytes of a file between two offsets.
func (d *Faulty) bytes(name string, from, to int64) ([]byte, error) {
	f, err := d.FS.OpenAt(name)
	if err != nil {
		return nil, err
	}
	b := make([]byte, to-from)
	_, err = f.ReadAt(b, from)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b, errors.Join(err, f.Close())
}

// Rename renames a file.
func (d *Faulty) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.chargeCall(func() error { return d.FS.Rename(from, to) }); err != nil {
		return err
	}
	if err := d.FS.Rename(from, to); err != nil {
		return err
	}
	if n, ok := d.synced[from]; ok {
		d.synced[to] = max(n, 0) // the name is durable now, but not the data
		delete(d.synced, from)
	}
	d.dropRemoved(filepath.Dir(to))
	return nil
}

// Truncate truncates a file to size.
func (d *Faulty) Truncate(name string, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.chargeCall(nil); err != nil {
		return err
	}
	if n, ok := d.synced[name]; ok {
		d.synced[name] = min(n, size)
	}
	return d.FS.Truncate(name, size)
}

// Remove removes a file.
func (d *Faulty) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.chargeCall(nil); err != nil {
		return err
	}
	if durable, written := d.synced[name]; d.dies && (!written || durable >= 0) {
		if err := d.recordRemoved(name, durable, written); err != nil {
			return err
		}
	}
	delete(d.synced, name)
	return d.FS.Remove(name)
}

// recordRemoved stores the durable data of a file that is being removed.
func (d *Faulty) recordRemoved(name string, durable int64, written bool) error {
	size, err := d.FS.Size(name)
	if err != nil {
		return err
	}
	if written {
		size = min(size, durable)
	}
	data, err := d.bytes(name, 0, size)
	if err != nil {
		return nil //nolint:nilerr // a folder
	}
	d.removed = append(d.removed, removedFile{name, data})
	return nil
}

// SyncDir makes removals durable.
func (d *Faulty) SyncDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.chargeCall(nil); err != nil {
		return err
	}
	d.dropRemoved(dir)
	return d.FS.SyncDir(dir)
}

// dropRemoved makes the removals from a folder durable.
func (d *Faulty) dropRemoved(dir string) {
	rest := d.removed[:0]
	for _, g := range d.removed {
		if filepath.Dir(g.name) != filepath.Clean(dir) {
			rest = append(rest, g)
		}
	}
	d.removed = rest
}
