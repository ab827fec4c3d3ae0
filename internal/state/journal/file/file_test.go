package file_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/state/journal"
	"kumo/internal/state/journal/file"
	"kumo/internal/state/journal/journaltest"
)

func TestContract(t *testing.T) {
	for _, segment := range []int64{1, 300, 0} { // one batch per segment; a few; all in one
		t.Run(fmt.Sprint("segments of ", segment), func(t *testing.T) {
			journaltest.Run(t, func(t *testing.T) journaltest.Open {
				dir := filepath.Join(t.TempDir(), "journal")
				return func(disk vfs.FS) (journal.Journal, error) { return file.Open(disk, dir, file.Config{Segment: segment}) }
			})
		})
	}
}

const headLen = len("kumo journal 2 0000000000000000\n")

// first returns the name of a journal's first segment.
func first(dir string) string { return filepath.Join(dir, "0000000000000000.log") }

// write creates a journal of three batches in one segment and returns its bytes.
func write(t *testing.T, dir string) []byte {
	t.Helper()
	fill(t, dir, file.Config{})
	data, err := os.ReadFile(first(dir))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func fill(t *testing.T, dir string, cfg file.Config) {
	t.Helper()
	j, err := file.Open(vfs.OS, dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []string{"first", "second", "third"} {
		if err := j.Append([]byte(b)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// use opens a journal whose first segment has these bytes, replays it and appends to it.
func use(t *testing.T, dir string, data []byte) error {
	t.Helper()
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(first(dir), data, 0o644)); err != nil {
		t.Fatal(err)
	}
	return open(dir)
}

func open(dir string) error {
	j, err := file.Open(vfs.OS, dir, file.Config{})
	if err != nil {
		return err
	}
	defer j.Close()
	return errors.Join(j.Replay(0, func([]byte, journal.Position) error { return nil }), j.Append([]byte("more")))
}

func TestEveryTornEndIsCutOff(t *testing.T) {
	dir := t.TempDir()
	data := write(t, dir)
	for cut := range len(data) {
		if err := use(t, dir, data[:cut]); err != nil {
			t.Errorf("cut at %d of %d: %v", cut, len(data), err)
		}
	}
	if err := use(t, dir, append(data[:len(data)-3:len(data)-3], make([]byte, 5000)...)); err != nil {
		t.Errorf("zeros at the end: %v", err)
	}
	if err := use(t, dir, make([]byte, 4096)); err != nil {
		t.Errorf("zeros alone: %v", err)
	}
	for at := range headLen {
		holed := bytes.Clone(data)
		clear(holed[at:min(at+3, headLen)])
		if err := use(t, dir, holed[:headLen]); err != nil {
			t.Errorf("a first line of which a part from %d was not written: %v", at, err)
		}
		// the first line was durable before the first batch was written
		if err := use(t, dir, holed); !errors.Is(err, file.ErrVersion) {
			t.Errorf("batches behind a first line without a part from %d: %v, not %v", at, err, file.ErrVersion)
		}
	}
}

// A page's header in the journal may look like a frame. If a torn batch contains one, the journal is not damaged.
func TestAFrameWithinATornBatchIsItsOwn(t *testing.T) {
	frame := write(t, t.TempDir())[headLen : headLen+12+len("first")]
	dir := t.TempDir()
	j, err := file.Open(vfs.OS, dir, file.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Append([]byte("before")), j.Append(append(append([]byte("etag: "), frame...), "and more"...)),
		j.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(first(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := use(t, dir, data[:len(data)-1]); err != nil {
		t.Error(err)
	}
}

// A power failure while segments are dropped leaves no gap between the remaining ones.
func TestDropSurvivesAPowerCut(t *testing.T) {
	for seed := range uint64(60) {
		dir := t.TempDir()
		fill(t, dir, file.Config{Segment: 1})
		disk := vfstest.NewFaulty(vfs.OS)
		dice := rand.New(rand.NewPCG(seed, 0))
		disk.DieAfter(1 + dice.Int64N(1200))
		if j, err := file.Open(disk, dir, file.Config{Segment: 1}); err == nil {
			_ = j.Drop(j.End()) // it may fail
			_ = j.Close()
		}
		if err := disk.PowerLoss(dice); err != nil {
			t.Fatal(err)
		}
		j, err := file.Open(vfs.OS, dir, file.Config{Segment: 1})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		_ = j.Close()
	}
}

func TestDamageInTheMiddleIsRefused(t *testing.T) {
	dir := t.TempDir()
	data := write(t, dir)
	last := len(data) - len("third") - 12
	for i := headLen; i < last; i++ {
		damaged := bytes.Clone(data)
		damaged[i] ^= 1
		if err := use(t, dir, damaged); !errors.Is(err, file.ErrDamaged) {
			t.Errorf("byte %d of %d: got %v, want ErrDamaged", i, len(data), err)
		}
	}
	for i := last; i < len(data); i++ { // the last batch may have been torn in any way
		torn := bytes.Clone(data)
		torn[i] ^= 1
		if err := use(t, dir, torn); err != nil {
			t.Errorf("byte %d of %d: %v", i, len(data), err)
		}
		if kept, err := os.ReadFile(first(dir) + ".torn"); err != nil || !bytes.Equal(kept, torn[last:]) {
			t.Errorf("byte %d: what was cut off is not kept: %v", i, err)
		}
	}
}

func TestDamageInAnEarlierSegmentIsRefused(t *testing.T) {
	for name, harm := range map[string]func(dir string, segments []string) error{
		"cut":     func(_ string, s []string) error { return os.Truncate(s[1], int64(headLen)+5) },
		"gone":    func(_ string, s []string) error { return os.Remove(s[1]) },
		"flipped": func(_ string, s []string) error { return flip(s[1], headLen+14) },
		"renamed": func(dir string, s []string) error { return os.Rename(s[0], filepath.Join(dir, "0000000000000001.log")) },
	} {
		dir := t.TempDir()
		fill(t, dir, file.Config{Segment: 1})
		segments, err := filepath.Glob(filepath.Join(dir, "*.log"))
		if err != nil || len(segments) != 3 {
			t.Fatal(segments, err)
		}
		if err := harm(dir, segments); err != nil {
			t.Fatal(err)
		}
		if err := open(dir); !errors.Is(err, file.ErrDamaged) {
			t.Errorf("%s: got %v, want ErrDamaged", name, err)
		}
	}
}

func flip(name string, at int) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	data[at] ^= 1
	return os.WriteFile(name, data, 0o644)
}

func TestOtherVersionsAreRefused(t *testing.T) {
	for _, data := range []string{"kumo journal 3 0000000000000000\nabc", "something else altogether, and long enough"} {
		if err := use(t, t.TempDir(), []byte(data)); !errors.Is(err, file.ErrVersion) {
			t.Errorf("%q: got %v, want ErrVersion", data, err)
		}
	}
	name := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(name, []byte("kumo journal 1\nabc"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := open(name); !errors.Is(err, file.ErrVersion) {
		t.Errorf("one file: got %v, want ErrVersion", err)
	}
}

func TestDropRemovesFiles(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, file.Config{Segment: 1})
	j, err := file.Open(vfs.OS, dir, file.Config{Segment: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Drop(j.End()); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.log")); err != nil || len(left) != 1 {
		t.Errorf("left: %v (%v)", left, err)
	}
	if err := j.Replay(0, func([]byte, journal.Position) error { return nil }); !errors.Is(err, journal.ErrDropped) {
		t.Errorf("replay from the beginning: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("kumo journal 2 0000000000000000\n\x03\x00\x00\x00\x00\x00\x00\x00abc"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		use(t, dir, data)
	})
}

// TestDeclaredLengthAllocatesNothing: a short segment whose frame announces a batch of 1 GiB does not cost that much
// memory, and Salvage finds the batches after such frames.
func TestDeclaredLengthAllocatesNothing(t *testing.T) {
	dir := t.TempDir()
	data := write(t, dir)
	declared := binary.LittleEndian.AppendUint32(nil, 1<<30)
	declared = binary.LittleEndian.AppendUint32(declared, crc32.Checksum(declared, crc32.MakeTable(crc32.Castagnoli)))
	declared = append(declared, "sum."...)
	lying := slices.Concat(data[:headLen], declared, declared, data[headLen:])
	want := 0
	count := func(n *int) func([]byte) error { return func([]byte) error { *n++; return nil } }
	if _, err := file.Salvage(vfs.OS, dir, count(&want)); err != nil || want == 0 {
		t.Fatalf("%d batches, %v", want, err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := use(t, dir, slices.Clone(lying)); err != nil && !errors.Is(err, file.ErrDamaged) {
		t.Error(err)
	}
	if err := os.WriteFile(first(dir), lying, 0o600); err != nil {
		t.Fatal(err)
	}
	got := 0
	lost, err := file.Salvage(vfs.OS, dir, count(&got))
	runtime.ReadMemStats(&after)
	if err != nil || got != want || lost != int64(2*len(declared)) {
		t.Errorf("%d batches of %d, %d bytes lost, %v", got, want, lost, err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("%d MB were allocated", n>>20)
	}
}
