package tier

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kumo/internal/base/vfs"
	"kumo/internal/state/seen/run"
)

// one is a source of one key.
type one struct{ key, value string }

func (o *one) Next() bool    { more := o.value != ""; return more }
func (o *one) Key() []byte   { return []byte(o.key) }
func (o *one) Value() []byte { v := o.value; o.value = ""; return []byte(v) }
func (o *one) Err() error    { return nil }

func concat(newer, older []byte) []byte { return append(newer, older...) }

func TestTiers(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(vfs.OS, dir, Config{Merge: concat, Ratio: 3})
	check(t, err)
	for i := range 26 {
		check(t, s.Add(t.Context(), &one{"key", string(rune('a' + i))}, nil, func(m *Manifest) { m.Position = uint64(i) }))
		_, err := s.Compact(t.Context())
		check(t, err)
	}
	var tiers []int
	for _, r := range s.Manifest().Runs {
		tiers = append(tiers, r.Tier)
	}
	if !slices.Equal(tiers, []int{0, 0, 1, 1, 2, 2}) {
		t.Errorf("26 runs became %v", tiers)
	}
	files(t, dir, 7)
	check(t, s.Close())
	check(t, os.WriteFile(filepath.Join(dir, "00000999.run"), []byte("left behind"), 0o600))

	s, err = Open(vfs.OS, dir, Config{Merge: concat})
	check(t, err)
	files(t, dir, 7)
	if m := s.Manifest(); m.Position != 25 {
		t.Errorf("Position = %d", m.Position)
	}
	v, all := s.Pin(), ""
	for value, err := range v.Get("key") {
		check(t, err)
		all += string(value)
	}
	if all != "zyxwvutsrqponmlkjihgfedcba" {
		t.Errorf("the values are %s", all)
	}
	check(t, s.Close())
	check(t, v.Release())
}

// TestPinned: a run's file stays while a view pins it.
func TestPinned(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(vfs.OS, dir, Config{Merge: concat, Ratio: 2})
	check(t, err)
	for i := range 2 {
		check(t, s.Add(t.Context(), &one{fmt.Sprint(i), "v"}, nil, func(*Manifest) {}))
	}
	v := s.Pin()
	done, err := s.Compact(t.Context())
	if !done || err != nil {
		t.Errorf("Compact = %v, %v", done, err)
	}
	files(t, dir, 4)
	all := run.Merge(concat, v.Scan([]byte("1"))...)
	if !all.Next() || string(all.Key()) != "1" || all.Next() {
		t.Errorf("Scan gives %q, %v", all.Key(), all.Err())
	}
	check(t, v.Release())
	files(t, dir, 2)
	check(t, s.Close())
}

// TestWaiting: a pending run survives a restart, separate from the others, until it is dropped.
func TestWaiting(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(vfs.OS, dir, Config{Merge: concat, Ratio: 2})
	check(t, err)
	for _, v := range []string{"a", "b"} {
		check(t, s.Add(t.Context(), &one{"key", v}, &one{"late", v}, func(*Manifest) {}))
	}
	_, err = s.Compact(t.Context())
	check(t, err)
	check(t, s.Close())
	s, err = Open(vfs.OS, dir, Config{Merge: concat})
	check(t, err)
	v := s.Pin()
	files(t, dir, 4)
	if st := v.Stats(); st.Entries != 1 || st.Waiting != 2 || v.May("late", run.HashString("late")) {
		t.Errorf("%+v", st)
	}
	check(t, s.DropWaiting(0))
	files(t, dir, 4) // pinned by v
	all := run.Merge(concat, v.Waiting().Scan(nil)...)
	if !all.Next() || string(all.Key()) != "late" || string(all.Value()) != "ba" || all.Next() {
		t.Errorf("%q, %q wait: %v", all.Key(), all.Value(), all.Err())
	}
	check(t, v.Release())
	files(t, dir, 2)
	if n := s.View().Stats().Waiting; n != 0 {
		t.Errorf("%d wait", n)
	}
	check(t, s.Close())
}

func TestOpenRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"kumo runs 2 00000000\n{}": run.ErrVersion,
		"hello\n":                  run.ErrVersion,
		magic + " 00000000\n{}":    run.ErrDamaged,
		heading(`{"Runs":[{"ID":1}]}`) + "\n" + `{"Runs":[{"ID":1}]}`: os.ErrNotExist,
	} {
		dir := t.TempDir()
		check(t, os.WriteFile(filepath.Join(dir, manifestName), []byte(text), 0o600))
		if _, err := Open(vfs.OS, dir, Config{Merge: concat}); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

func TestRate(t *testing.T) {
	s, err := Open(vfs.OS, t.TempDir(), Config{Merge: concat, Rate: 1 << 20})
	check(t, err)
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	check(t, s.wait(ctx, 1<<20)) // the burst
	cancel()
	if err := s.wait(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("wait = %v", err)
	}
}

func files(t *testing.T, dir string, want int) {
	t.Helper()
	names, err := vfs.OS.List(dir)
	check(t, err)
	if len(names) != want {
		t.Errorf("the folder has %v, want %d files", names, want)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
