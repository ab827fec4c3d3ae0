package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
)

// ErrDead is what every call returns after the instant that [Faulty.DieAfter] chose.
var ErrDead = errors.New("the process is dead")

// DieAfter lets n more bytes be written. The write that goes beyond is torn there, and from then on every call fails, as if
// the process had been killed.
func (d *Faulty) DieAfter(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.life, d.mortal = n, true
}

// Dead reports whether the instant has come.
func (d *Faulty) Dead() bool { return d.alive() != nil }

// PowerLoss leaves below what a machine may find after its power failed: of what was written and not synced each file keeps as
// much as chance will have it, with pieces of that never written; a file that was never synced may be gone.
func (d *Faulty) PowerLoss(dice *rand.Rand) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, synced := range d.synced {
		if err := d.lose(dice, name, synced); err != nil {
			return fmt.Errorf("lose what was not synced of %s: %w", name, err)
		}
	}
	clear(d.synced)
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
	tail, err := d.tail(name, synced, size)
	if err != nil {
		return err
	}
	tail = tail[:dice.IntN(len(tail)+1)]
	if len(tail) > 0 && dice.IntN(2) == 0 {
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

func (d *Faulty) tail(name string, from, to int64) ([]byte, error) {
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

// alive is ErrDead once the process is dead.
func (d *Faulty) alive() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mortal && d.life <= 0 {
		return ErrDead
	}
	return nil
}

// Rename gives a file another name.
func (d *Faulty) Rename(from, to string) error {
	if err := d.alive(); err != nil {
		return err
	}
	if err := d.FS.Rename(from, to); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, ok := d.synced[from]; ok {
		d.synced[to] = max(n, 0) // the name is durable now, what is in it is not
		delete(d.synced, from)
	}
	return nil
}

// Truncate cuts a file to size.
func (d *Faulty) Truncate(name string, size int64) error {
	if err := d.alive(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, ok := d.synced[name]; ok {
		d.synced[name] = min(n, size)
	}
	return d.FS.Truncate(name, size)
}

// Remove removes a file.
func (d *Faulty) Remove(name string) error {
	if err := d.alive(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.synced, name)
	return d.FS.Remove(name)
}
