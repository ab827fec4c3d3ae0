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

// ErrFault is what a faulty place says.
var ErrFault = place.Transient(errors.New("503 slow down"))

// A Faulty place fails as stores do that are far away: it answers with an error, cuts what is written or read, keeps a
// file and says that it has not, or keeps other bytes than it was given.
type Faulty struct {
	place.Place
	mu     sync.Mutex // guards what follows
	dice   *rand.Rand
	chance int   // of a fault, in a thousand
	room   int64 // bytes that can still be written; negative: without limit
	down   error // all fails with it; nil: it is up
	faults int
}

// NewFaulty makes a place faulty: so many of a thousand steps fail.
func NewFaulty(p place.Place, dice *rand.Rand, chance int) *Faulty {
	return &Faulty{Place: p, dice: dice, chance: chance, room: -1}
}

// SetChance sets how many of a thousand steps fail.
func (f *Faulty) SetChance(chance int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chance = chance
}

// SetDown has all fail with an error, or, with nil, work again.
func (f *Faulty) SetDown(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = err
}

// SetRoom lets n more bytes be written; a negative n takes the limit away.
func (f *Faulty) SetRoom(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room = n
}

// Faults is how many steps have failed by chance.
func (f *Faulty) Faults() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults
}

// step fails if the place is down, or chance has it so.
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

// reserve takes room for n bytes.
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

// Open opens a file of which a part may be read.
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

// Create begins a file that may not come to be, or not as it was written.
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
		if w.f.oneIn(3) == 0 && len(p) > 0 { // and nobody is told
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
	return err // or it is there, and the answer was lost
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

// Stat says what a name stands for.
func (f *Faulty) Stat(ctx context.Context, name string) (place.Info, error) {
	if err := f.step(); err != nil {
		return place.Info{}, err
	}
	return f.Place.Stat(ctx, name)
}
