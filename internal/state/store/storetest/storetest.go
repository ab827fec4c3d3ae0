// Package storetest implements the conformance tests of stores.
//
// A store must keep marked records after a crash at any moment, drop data after the mark, report a full disk as such,
// and leave files in their final form on Close.
//
// The tests do not know the format of a store. They search for URLs in the folder's files, after decompressing gzip and
// zstd. For index files, which repeat other data, they check only the names. A simulated crash is a copy of the folder
// in its current state.
package storetest

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/state/store"
)

// An Opener opens the store under test in dir. If it rotates files, it should do so after about 100 KB.
type Opener func(disk vfs.FS, dir string, marks []store.Mark) (store.Store, error)

// Run runs the conformance tests.
func Run(t *testing.T, open Opener) {
	for name, test := range map[string]func(*testing.T, Opener){
		"an empty store closes":                        testEmpty,
		"concurrent puts are complete":                 testConcurrent,
		"a crash keeps marked data":                    testCrash,
		"a crash before the first mark leaves nothing": testUnmarked,
		"finalized files survive a crash":              testFinalized,
		"Close keeps committed data only":              testUnfinalized,
		"a closed store can be reopened":               testReopen,
		"lost bytes are reported":                      testLost,
		"a full disk is reported and can recover":      testFullDisk,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

func testEmpty(t *testing.T, open Opener) {
	dir := t.TempDir()
	s := mustOpen(t, open, vfs.OS, dir, nil)
	finish(t, s)
	expect(t, dir, 0)
	expectFinal(t, dir)
}

func testConcurrent(t *testing.T, open Opener) {
	const writers, each = 8, 50
	dir := t.TempDir()
	s := mustOpen(t, open, vfs.OS, dir, nil)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if err := s.Put(Record(w*each + i)); err != nil {
					t.Error(err)
				}
				if err := s.PutSkip(Skip(w*each + i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	finish(t, s)
	expect(t, dir, writers*each)
	expectFinal(t, dir)
}

// testCrash commits at random, and crashes after every few records. Data after the last journaled mark may be intact,
// damaged or missing, as after a power failure.
func testCrash(t *testing.T, open Opener) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	s := mustOpen(t, open, vfs.OS, dir, nil)
	var journalled []store.Mark
	marked := 0
	for n := range 40 {
		put(t, s, n, n+1)
		if rnd.IntN(4) == 0 {
			journalled, marked = commit(t, s), n+1
		}
		if rnd.IntN(5) == 0 {
			mark(t, s) // never reaches the journal
		}
		if rnd.IntN(6) > 0 {
			continue
		}
		crashed := crash(t, dir, journalled, rnd)
		survivor := mustOpen(t, open, vfs.OS, crashed, journalled)
		if rnd.IntN(2) == 0 { // crash again immediately
			crashed = crash(t, crashed, journalled, rnd)
			survivor = mustOpen(t, open, vfs.OS, crashed, journalled)
		}
		put(t, survivor, 1000, 1010)
		finish(t, survivor)
		expect(t, crashed, marked, span{1000, 1010})
		expectFinal(t, crashed)
	}
	finish(t, s)
	expect(t, dir, 40)
}

func testUnmarked(t *testing.T, open Opener) {
	dir := t.TempDir()
	s := mustOpen(t, open, vfs.OS, dir, nil)
	put(t, s, 0, 20)
	mark(t, s)
	finish(t, mustOpen(t, open, vfs.OS, crash(t, dir, nil, nil), nil))
	crashed := crash(t, dir, nil, nil)
	finish(t, mustOpen(t, open, vfs.OS, crashed, nil))
	expect(t, crashed, 0)
	finish(t, s)
}

// testFinalized crashes between Finalize and the next journaled mark, when marks name files that already have their
// final names.
func testFinalized(t *testing.T, open Opener) {
	dir := t.TempDir()
	s := mustOpen(t, open, vfs.OS, dir, nil)
	put(t, s, 0, 40)
	marks := commit(t, s)
	put(t, s, 40, 60)
	mark(t, s)
	crashed := crash(t, dir, marks, nil)
	survivor := mustOpen(t, open, vfs.OS, crashed, marks)
	put(t, survivor, 1000, 1010)
	finish(t, survivor)
	expect(t, crashed, 40, span{1000, 1010})
	finish(t, s)
}

// testUnfinalized closes the store after a commit that failed late: the marks were taken, but not journaled.
func testUnfinalized(t *testing.T, open Opener) {
	dir := t.TempDir()
	s := mustOpen(t, open, vfs.OS, dir, nil)
	put(t, s, 0, 10)
	marks := commit(t, s)
	put(t, s, 10, 50)
	mark(t, s)
	put(t, s, 50, 60)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	finish(t, mustOpen(t, open, vfs.OS, dir, marks))
	expect(t, dir, 10)
	expectFinal(t, dir)
}

func testReopen(t *testing.T, open Opener) {
	dir := t.TempDir()
	var marks []store.Mark
	for round := range 3 {
		s := mustOpen(t, open, vfs.OS, dir, marks)
		put(t, s, round*30, round*30+30)
		marks = finish(t, s)
		expect(t, dir, round*30+30)
		expectFinal(t, dir)
	}
}

func testLost(t *testing.T, open Opener) {
	dir := t.TempDir()
	s := mustOpen(t, open, vfs.OS, dir, nil)
	put(t, s, 0, 3)
	marks := commit(t, s)
	for _, m := range marks {
		if m.Length == 0 || strings.Contains(m.Name, ".cdxj") {
			continue
		}
		crashed := crash(t, dir, marks, nil)
		if err := vfs.OS.Truncate(filepath.Join(crashed, m.Name), m.Length-1); err != nil {
			t.Fatal(err)
		}
		if _, err := open(vfs.OS, crashed, marks); err == nil {
			t.Errorf("%s lost a byte, but no error was returned", m.Name)
		}
	}
	finish(t, s)
}

func testFullDisk(t *testing.T, open Opener) {
	for _, room := range []int64{0, 1, 700, 40_000, 150_000} {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			dir := t.TempDir()
			disk := vfstest.NewFaulty(vfs.OS)
			s := mustOpen(t, open, disk, dir, nil)
			put(t, s, 0, 10)
			marks := commit(t, s)
			disk.SetRoom(room)
			if err := fill(s); !vfs.IsFull(err) {
				t.Fatalf("the error of a full disk is %v", err)
			}
			disk.SetRoom(-1)
			if err := s.Close(); err != nil {
				t.Logf("close: %v", err) // may report the full disk again
			}
			s = mustOpen(t, open, disk, dir, marks)
			put(t, s, 10, 20)
			finish(t, s)
			expect(t, dir, 20)
			expectFinal(t, dir)
		})
	}
}

// fill writes records until an error.
func fill(s store.Store) error {
	for n := 1000; n < 2000; n++ {
		if err := s.Put(Record(n)); err != nil {
			return err
		}
		if n%10 == 9 {
			if _, err := s.Mark(); err != nil {
				return err
			}
		}
	}
	return nil
}
