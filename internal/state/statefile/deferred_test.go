package statefile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

func TestDeferredURLsComeBackFromWhereItIsAsked(t *testing.T) {
	dir := t.TempDir()
	a, err := OpenDeferred(vfs.OS, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var want []page.Skip
	for i := range 10 {
		s := page.Skip{URL: fmt.Sprintf("http://a/%d", i), Host: "a", From: "http://a/", Depth: i, Rule: "depth",
			Why:  "deeper than 0",
			Time: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)}
		want = append(want, s)
		if err := a.Add(want[i:]); err != nil {
			t.Fatal(err)
		}
	}
	marks, err := a.Mark()
	if err != nil {
		t.Fatal(err)
	}
	var got []page.Skip
	ends := []int64{0}
	collect := func(s page.Skip, end int64) error {
		got, ends = append(got, s), append(ends, end)
		return nil
	}
	if err := a.Read(0, collect); err != nil || !reflect.DeepEqual(got, want) || ends[10] != marks[0].Length {
		t.Fatalf("%v\n%v, ends %v (%v)", got, want, ends, err)
	}
	got = nil
	if err := a.Read(ends[7], collect); err != nil || !reflect.DeepEqual(got, want[7:]) {
		t.Errorf("from the eighth on: %v (%v)", got, err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := FindDeferred(gone, vfs.OS, dir, want[9].URL); !errors.Is(err, context.Canceled) {
		t.Errorf("who has left is told %v", err)
	}
	if s, err := FindDeferred(t.Context(), vfs.OS, dir, want[9].URL); err != nil || s == nil || s.Depth != 9 {
		t.Errorf("the last: %v (%v)", s, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	a, err = OpenDeferred(vfs.OS, dir, []store.Mark{{Name: marks[0].Name, Length: ends[3]}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if got = nil; a.Read(0, collect) != nil || !reflect.DeepEqual(got, want[:3]) {
		t.Errorf("cut back: %v", got)
	}
	a.damage(t, ends[1]+4)
	got = nil
	if err := a.Read(0, collect); !errors.Is(err, ErrDeferred) || !reflect.DeepEqual(got, want[:1]) {
		t.Errorf("with a flipped bit in the second: %v (%v)", got, err)
	}
	var none *Deferred
	if err := none.Add(want); err != nil {
		t.Error(err)
	}
}

// damage flips a bit of the file that only the checksum can detect.
func (a *Deferred) damage(t *testing.T, at int64) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(a.dir, DeferredName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}
