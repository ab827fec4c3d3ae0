package vfs

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"
)

// TestScratchKeepsStretchesApart writes and frees several spools at once, at random, and reads each back.
func TestScratchKeepsStretchesApart(t *testing.T) {
	s := NewScratch(t.TempDir(), nil, 0)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var all sync.WaitGroup
	for g := range uint64(4) {
		all.Go(func() {
			dice := rand.New(rand.NewPCG(seed, g))
			for range 40 {
				st, want := s.New(), []byte(nil)
				for range dice.IntN(8) {
					part := bytes.Repeat([]byte{byte(dice.Uint32())}, dice.IntN(2*scratchBlock))
					if n, err := st.Write(part); n != len(part) || err != nil {
						t.Errorf("wrote %d of %d: %v", n, len(part), err)
						return
					}
					want = append(want, part...)
				}
				got, err := io.ReadAll(io.NewSectionReader(st, 0, st.Len()))
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("read %d bytes of %d: %v", len(got), len(want), err)
				}
				st.Free()
			}
		})
	}
	all.Wait()
	if s.Used() != 0 || s.next != 0 {
		t.Errorf("%d bytes in use, file of %d blocks, when nobody has any", s.Used(), s.next)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestScratchLeavesNoFile tests that a killed process leaves no file.
func TestScratchLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	s := NewScratch(dir, nil, 0)
	if _, err := s.New().Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) > 0 && os.PathSeparator == '/' {
		t.Errorf("%s has a name", names[0])
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if names, _ = os.ReadDir(dir); len(names) > 0 {
		t.Errorf("%s is left", names[0])
	}
}

// TestScratchLeavesRoom tests that growth stops before the disk is full, and that freed blocks are reused.
func TestScratchLeavesRoom(t *testing.T) {
	left := uint64(3 * scratchGrowth * scratchBlock)
	s := NewScratch(t.TempDir(), func() (uint64, error) { return left, nil }, 2*scratchGrowth*scratchBlock)
	first, piece := s.New(), make([]byte, scratchGrowth*scratchBlock)
	if _, err := first.Write(piece); err != nil {
		t.Fatal(err)
	}
	left -= uint64(len(piece))
	second := s.New()
	if n, err := second.Write(piece); n != 0 || !errors.Is(err, ErrNoRoom) {
		t.Fatalf("wrote %d bytes, %v", n, err)
	}
	first.Free()
	left += uint64(len(piece))
	if n, err := second.Write(piece); n != len(piece) || err != nil {
		t.Fatalf("wrote %d bytes, %v", n, err)
	}
}

// A tornFile accepts only a part of a write, once.
type tornFile struct {
	scratchFile
	torn bool
}

func (f *tornFile) WriteAt(p []byte, off int64) (int, error) {
	if f.torn {
		return f.scratchFile.WriteAt(p, off)
	}
	f.torn = true
	n, _ := f.scratchFile.WriteAt(p[:len(p)/3], off)
	return n, syscall.ENOSPC
}

// TestScratchGoesOnAfterATornWrite writes the rest when there is space again.
func TestScratchGoesOnAfterATornWrite(t *testing.T) {
	s := NewScratch(t.TempDir(), nil, 0)
	s.open = func(dir string) (scratchFile, error) {
		f, err := openScratch(dir)
		return &tornFile{scratchFile: f}, err
	}
	st, want := s.New(), bytes.Repeat([]byte("abcdefg"), 50_000)
	n, err := st.Write(want)
	if !IsFull(err) || int64(n) != st.Len() {
		t.Fatalf("wrote %d bytes of %d, %v", n, st.Len(), err)
	}
	if _, err := st.Write(want[n:]); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(io.NewSectionReader(st, 0, st.Len()))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes of %d: %v", len(got), len(want), err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestScratchOfAFullDisk tests that without a minimum of free space, the whole disk is used, until it is full.
func TestScratchOfAFullDisk(t *testing.T) {
	left := uint64(scratchBlock)
	s := NewScratch(t.TempDir(), func() (uint64, error) { return left, nil }, 0)
	defer s.Close()
	if _, _, err := s.allocBlock(); err != nil {
		t.Errorf("with room for a block: %v", err)
	}
	other := NewScratch(t.TempDir(), func() (uint64, error) { return left, nil }, 1)
	defer other.Close()
	if _, _, err := other.allocBlock(); !IsFull(err) {
		t.Errorf("with less than is to be left: %v, want one that says that the disk is full", err)
	}
}
