package placetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"kumo/internal/archive/place"
)

// ErrFault is the error of a simulated fault.
var ErrFault = place.Transient(errors.New("503 slow down"))

// A Faulty location fails as remote stores do: it returns errors, cuts writes or reads, stores a file but reports an
// error, or stores other bytes than it was given.
type Faulty struct {
	place.Place
	mu     sync.Mutex // guards the fields below
	dice   *rand.Rand
	chance int   // probability of a fault, in thousandths
	room   int64 // remaining bytes that can be written; negative: no limit
	down   error // error of all calls; nil: up
	faults int
}

// NewFaulty returns a faulty variant of p: chance steps in a thousand fail.
func NewFaulty(p place.Place, dice *rand.Rand, chance int) *Faulty {
	return &Faulty{Place: p, dice: dice, chance: chance, room: -1}
}

// SetChance sets how many steps in a thousand fail.
func (f *Faulty) SetChance(chance int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chance = chance
}

// SetDown makes all calls fail with an error, or work again if it is nil.
func (f *Faulty) SetDown(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = err
}

// SetRoom limits further writes to n bytes; a negative n removes the limit.
func (f *Faulty) SetRoom(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room = n
}

// Faults returns the number of simulated faults.
func (f *Faulty) Faults() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults
}

// step fails if the location is down, or by chance.
func (f *Faulty) step() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down != nil {
		return f.down
	}
	if f.dice.IntN(1000) < f.chance {
		f.faults++
		return ErrFault
	}
	return nil
}

// reserve reserves space for n bytes.
func (f *Faulty) reserve(n int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.room >= 0 && f.room < int64(n) {
		return fmt.Errorf("507 insufficient storage")
	}
	if f.room >= 0 {
		f.room -= int64(n)
	}
	return nil
}

// Open opens a file that may be cut.
func (f *Faulty) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	r, err := f.Place.Open(ctx, name, offset, length)
	if err != nil {
		return nil, err
	}
	return &faultyReader{r, f}, nil
}

type faultyReader struct {
	io.ReadCloser
	f *Faulty
}

func (r *faultyReader) Read(p []byte) (int, error) {
	if err := r.f.step(); err != nil {
		return 0, err
	}
	return r.ReadCloser.Read(p)
}

// Create starts a file that may fail to appear, or have other bytes.
func (f *Faulty) Create(ctx context.Context, name string) (place.Writer, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	w, err := f.Place.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	return &faultyWriter{w, f}, nil
}

type faultyWriter struct {
	place.Writer
	f *Faulty
}

func (w *faultyWriter) Write(p []byte) (int, error) {
	if err := w.f.reserve(len(p)); err != nil {
		return 0, err
	}
	if err := w.f.step(); err != nil {
		if w.f.oneIn(3) == 0 && len(p) > 0 { // without an error
			q := append([]byte(nil), p...)
			q[w.f.oneIn(len(q))] ^= 1
			return w.Writer.Write(q)
		}
		return 0, err
	}
	return w.Writer.Write(p)
}

func (w *faultyWriter) Close() error {
	err := w.f.step()
	if err != nil && w.f.oneIn(2) == 0 {
		w.Abort()
		return err
	}
	if closed := w.Writer.Close(); closed != nil {
		return closed
	}
	return err // or it exists, and the response was lost
}

func (f *Faulty) oneIn(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dice.IntN(n)
}

// List lists a folder.
func (f *Faulty) List(ctx context.Context, dir string) ([]place.Info, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	return f.Place.List(ctx, dir)
}

// Stat describes a file or folder.
func (f *Faulty) Stat(ctx context.Context, name string) (place.Info, error) {
	if err := f.step(); err != nil {
		return place.Info{}, err
	}
	return f.Place.Stat(ctx, name)
}
