package away

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/base/vfs"
)

// putState writes a checkpoint. The content of each file is its name and the position.
func putState(t *testing.T, p place.Place, position uint64, names ...string) *State {
	t.Helper()
	s := &State{Position: position, RequiredPosition: position + 1}
	for _, name := range names {
		text := []byte(name + " at " + StateFolder(position))
		sum := sha256.Sum256(text)
		f := StateFile{Name: name, Path: StateFolder(position) + "/" + name, Size: int64(len(text)),
			SHA256: hex.EncodeToString(sum[:])}
		if err := place.WriteFile(t.Context(), p, f.Path, text); err != nil {
			t.Fatal(err)
		}
		s.Files = append(s.Files, f)
	}
	if err := s.Write(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestState(t *testing.T) {
	dir := t.TempDir()
	p, err := file.Open(dir, vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := ReadState(t.Context(), p); s != nil || err != nil {
		t.Errorf("of an empty place: %v, %v", s, err)
	}
	putState(t, p, 7, "seen/manifest", "seen/1.run")
	second := putState(t, p, 300, "seen/manifest", "frontier/checkpoint")
	copyTo := func() error {
		s, err := ReadState(t.Context(), p)
		if err != nil {
			return err
		}
		to := t.TempDir()
		if err := s.Copy(t.Context(), p, vfs.OS, to); err != nil {
			return err
		}
		for _, f := range s.Files {
			text, err := os.ReadFile(filepath.Join(to, filepath.FromSlash(f.Name)))
			if err != nil || string(text) != f.Name+" at "+StateFolder(s.Position) {
				t.Errorf("%s is %q, %v", f.Name, text, err)
			}
		}
		if s.Position != 300 {
			t.Errorf("the newest is %d", s.Position)
		}
		return nil
	}
	if err := copyTo(); err != nil {
		t.Fatal(err)
	}
	if err := second.RemoveOtherCheckpoints(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := copyTo(); err != nil {
		t.Fatal(err)
	}
	var left []string
	if err := place.Walk(t.Context(), p, StateDir, func(name string, _ place.Info) error {
		left = append(left, name)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(left) != 3 || slices.ContainsFunc(left, func(name string) bool { return strings.Contains(name, "0007") }) {
		t.Errorf("there are %q", left)
	}
	// A truncated, extended or changed list is not a valid checkpoint.
	for _, name := range append(left, left[0]) {
		whole, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for what, text := range map[string][]byte{"cut": whole[:len(whole)-3], "longer": append(slices.Clone(whole),
			"more"...),
			"other": slices.Concat(whole[:9], []byte("0"), whole[10:])} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := copyTo(); err == nil {
				t.Errorf("%s %s: nobody has seen it", name, what)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyTo(); err != nil {
		t.Fatal(err)
	}
}

// A brokenPlace fails reads after a number of bytes, and counts the bytes read of each file.
type brokenPlace struct {
	place.Place
	after int64
	read  map[string]int64
}

func (p *brokenPlace) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	src, err := p.Place.Open(ctx, name, offset, length)
	return &brokenFile{src, p, name, p.after}, err
}

type brokenFile struct {
	io.ReadCloser
	p    *brokenPlace
	name string
	left int64
}

func (f *brokenFile) Read(b []byte) (int, error) {
	if f.left == 0 {
		return 0, errors.New("connection reset")
	}
	n, err := f.ReadCloser.Read(b[:min(int64(len(b)), f.left)])
	f.left -= int64(n)
	f.p.read[f.name] += int64(n)
	return n, err
}

// A checkpoint is copied over an unreliable connection, and no byte twice.
func TestACopyGoesOn(t *testing.T) {
	at, err := file.Open(t.TempDir(), vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	old := putState(t, at, 7, "seen/manifest", "seen/1.run", "seen/gone.run")
	dir := t.TempDir()
	if err := old.Copy(t.Context(), at, vfs.OS, dir); err != nil {
		t.Fatal(err)
	}
	s := putState(t, at, 300, "frontier/checkpoint", "frontier/queue-1")
	s.Files = append(s.Files, old.Files[1])
	none := sha256.Sum256(nil)
	s.Files = append(s.Files, StateFile{Name: "seen/manifest", Path: s.Files[0].Path + ".empty",
		SHA256: hex.EncodeToString(none[:])})
	if err := place.WriteFile(t.Context(), at, s.Files[3].Path, nil); err != nil {
		t.Fatal(err)
	}
	p := &brokenPlace{Place: at, after: 7, read: map[string]int64{}}
	if err := s.Copy(t.Context(), p, vfs.OS, dir); err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Files {
		want := f.Size
		if f.Name == "seen/1.run" { // it was copied completely
			want = 0
		}
		if p.read[f.Path] != want {
			t.Errorf("%d bytes of %s were read, it has %d", p.read[f.Path], f.Path, f.Size)
		}
		if size, err := vfs.OS.Size(filepath.Join(dir, filepath.FromSlash(f.Name))); err != nil || size != f.Size {
			t.Errorf("%s has %d bytes of %d (%v)", f.Name, size, f.Size, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "seen", "gone.run")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is not of it stays: %v", err)
	}
	// a wrong tail after a correct beginning
	name := filepath.Join(dir, "frontier", "queue-1")
	if err := os.WriteFile(name, []byte("frontier/qu?"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.after = 1 << 20
	if err := s.Copy(t.Context(), p, vfs.OS, dir); err != nil {
		t.Error(err)
	}
}

// File names of a checkpoint become paths: none may lead out of the folder.
func TestAStateThatNamesOtherFiles(t *testing.T) {
	sum := strings.Repeat("0", 64)
	for _, name := range []string{"../seen/x", "seen/../../x", "journal/x", "seen", "seen/a/b", "seen/.x", "/etc/x",
		`seen/c:x`, ""} {
		s := &State{Files: []StateFile{{Name: name, Path: "state/0000000000000000/x", SHA256: sum}}}
		s.Sum = s.sum()
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseState(text); err == nil {
			t.Errorf("it may name a file %q", name)
		}
	}
}

// An oversized checkpoint, or one without enough disk space, is rejected before anything is written.
func TestAStateThatIsTooLarge(t *testing.T) {
	sum := strings.Repeat("0", 64)
	file := func(name string, size int64) StateFile {
		return StateFile{Name: name, Path: "state/0000000000000000/x", Size: size, SHA256: sum}
	}
	for what, files := range map[string][]StateFile{
		"a file twice": {file("seen/1.run", 1), file("seen/1.run", 1)},
		"an overflow":  {file("seen/1.run", math.MaxInt64), file("seen/2.run", 1)},
	} {
		s := &State{Files: files}
		s.Sum = s.sum()
		if err := s.check(); err == nil {
			t.Errorf("%s: it may be", what)
		}
	}
	s := &State{Files: []StateFile{file("seen/1.run", math.MaxInt64)}}
	s.Sum = s.sum()
	if err := s.check(); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	if err := s.Copy(t.Context(), nil, vfs.OS, dir); err == nil || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("without room: %v", err)
	}
}

func FuzzState(f *testing.F) {
	s := &State{Position: 1, RequiredPosition: 2, Files: []StateFile{{Name: "seen/1.run",
		Path: "state/0000000000000001/seen/1.run", Size: 3, SHA256: strings.Repeat("0", 64)}}}
	s.Sum = s.sum()
	text, _ := json.Marshal(s)
	f.Add(text)
	f.Add([]byte(`{"files":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseState(text)
		if err != nil {
			return
		}
		for _, f := range s.Files {
			if !filepath.IsLocal(filepath.FromSlash(f.Name)) || errors.Is(place.ValidName(f.Path), os.ErrInvalid) {
				t.Errorf("%+v", f)
			}
		}
	})
}
