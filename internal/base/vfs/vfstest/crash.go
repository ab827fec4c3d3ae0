package vfstest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
)

// ErrDead is what every call returns after the instant that [Faulty.DieAfter] chose.
var ErrDead = errors.New("the process is dead")

// callCost is what a call that changes no bytes takes of a process's life, so that death comes between such calls, too.
const callCost = 256

// DieAfter lets n more bytes be written; a sync, and a change of names or lengths, counts as 256. The write that goes
// beyond is torn there, and from then on every call fails, as if the process had been killed.
func (d *Faulty) DieAfter(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.life, d.dies = n, true
}

// Dead reports whether the instant has come.
func (d *Faulty) Dead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead()
}

func (d *Faulty) dead() bool { return d.dies && d.life <= 0 }

// chargeCall takes a step; the caller holds mu. Where it is the last, the call fails half-way: done may have been done when
// the machine goes down with the process.
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

// A ghost is a file that was removed, and whose removal is not durable.
type removedFile struct {
	name string
	data []byte
}

// PowerLoss leaves below what a machine may find after its power failed: of what was written and not synced each file
// keeps as much as chance will have it, with pieces of that never written; a file that was never synced may be gone,
// one that was removed may be back, and the rename that the process died in may have been done.
func (d *Faulty) PowerLoss(dice *rand.Rand) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, synced := range d.synced {
		if err := d.lose(dice, name, synced); err != nil {
			return fmt.Errorf("lose what was not synced of %s: %w", name, err)
		}
	}
	clear(d.synced)
	if d.halfDone != nil && dice.IntN(2) == 0 {
		if err := d.halfDone(); err != nil {
			return fmt.Errorf("do what was half done: %w", err)
		}
	}
	d.halfDone = nil
	return d.restoreRemoved(dice)
}

// restoreRemoved brings some of the removed files back.
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
		clear(tail[from : from+dice.IntN(len(tail)-from)]) // a later page was written, this one was not
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

// bytes are those of a file from one offset to another.
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

// Rename gives a file another name.
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
		d.synced[to] = max(n, 0) // the name is durable now, what is in it is not
		delete(d.synced, from)
	}
	d.dropRemoved(filepath.Dir(to))
	return nil
}

// Truncate cuts a file to size.
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

// recordRemoved keeps what was durable of a file that is removed.
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
		return nil //nolint:nilerr // it is a folder
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

// dropRemoved lets a folder's ghosts rest: what was removed there is gone for good.
func (d *Faulty) dropRemoved(dir string) {
	rest := d.removed[:0]
	for _, g := range d.removed {
		if filepath.Dir(g.name) != filepath.Clean(dir) {
			rest = append(rest, g)
		}
	}
	d.removed = rest
}
