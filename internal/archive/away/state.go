package away

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"kumo/internal/archive/place"
	"kumo/internal/base/vfs"
)

// StateDir is the folder in a place that has checkpoints of a node's state: for each a file that names its files, which
// is written last, and a folder with those that the one before had not brought. None is written over another.
const StateDir = "state"

// StateSubdirs are the folders of a crawl's state that a checkpoint has in a place: all that it takes to go on from there
// for who has the journal's rest.
var StateSubdirs = []string{"seen", "frontier", "abandoned"}

// A State is a checkpoint in a place.
type State struct {
	Position         uint64      `json:"position"` // up to which the journal is in it
	RequiredPosition uint64      `json:"relies"`   // and up to which the journal must be there that it goes on with
	Files            []StateFile `json:"files"`
	Sum              string      `json:"sum"` // of the rest
}

// A StateFile is a file of a checkpoint.
type StateFile struct {
	Name   string `json:"name"` // relative to the crawl's state: "seen/00000001.run"
	Path   string `json:"at"`   // relative to the place
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // in hexadecimal
}

func (s *State) sum() string {
	of := *s
	of.Sum = ""
	text, _ := json.Marshal(&of) // which has nothing that cannot be written
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

const stateSuffix = ".json"

func stateName(position uint64) string {
	return fmt.Sprintf("%s/%016x%s", StateDir, position, stateSuffix)
}

// StateFolder is where files go that a checkpoint is the first to have.
func StateFolder(position uint64) string { return fmt.Sprintf("%s/%016x", StateDir, position) }

// File is a file of the checkpoint, by its name.
func (s *State) File(name string) (f StateFile, is bool) {
	if s == nil {
		return f, false
	}
	i := slices.IndexFunc(s.Files, func(f StateFile) bool { return f.Name == name })
	if i < 0 {
		return f, false
	}
	return s.Files[i], true
}

// Write names the checkpoint's files, which are in the place.
func (s *State) Write(ctx context.Context, p place.Place) error {
	s.Sum = s.sum()
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	if len(text) >= maxState {
		return fmt.Errorf("a checkpoint of %d files is more than can be named: %d bytes, of at most %d", len(s.Files),
			len(text),
			maxState)
	}
	return WriteSmall(ctx, p, stateName(s.Position), append(text, '\n'))
}

// check holds a checkpoint to what one can be: names of files become paths on this machine's disk.
func (s *State) check() error {
	if s.Sum != s.sum() || s.RequiredPosition < s.Position {
		return errors.New("it is not as it was written")
	}
	names, size := map[string]bool{}, int64(0)
	for _, f := range s.Files {
		if names[f.Name] || f.Size > math.MaxInt64-size {
			return fmt.Errorf("it names %q twice, or has more bytes than there can be", f.Name)
		}
		names[f.Name], size = true, size+max(f.Size, 0)
		e := Entry{Name: f.Name, Size: f.Size, SHA256: f.SHA256}
		if err := errors.Join(e.check(), place.ValidName(f.Path)); err != nil {
			return err
		}
		if room, name := path.Split(f.Name); !slices.Contains(StateSubdirs, strings.TrimSuffix(room, "/")) ||
			strings.ContainsAny(name, `:\`) {
			return fmt.Errorf("it names a file %q", f.Name)
		}
	}
	return nil
}

const maxState = 64 << 20 // bytes; some quarter of a million files

// ErrState is a checkpoint in a place that is not as it was written.
var ErrState = errors.New("is no checkpoint")

// ReadState reads the newest checkpoint in a place that can be read; nil if there is none at all.
func ReadState(ctx context.Context, p place.Place) (*State, error) {
	all, err := p.List(ctx, StateDir)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, info := range slices.Backward(all) {
		if digits, is := strings.CutSuffix(info.Name, stateSuffix); !is || info.IsDir || len(digits) != 16 {
			continue
		}
		s, err := readState(ctx, p, StateDir+"/"+info.Name)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, ErrState) {
			return nil, err
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

func readState(ctx context.Context, p place.Place, name string) (*State, error) {
	text, err := readSmall(ctx, p, name, maxState)
	if err != nil {
		return nil, err
	}
	s, err := parseState(text)
	if err == nil && stateName(s.Position) != name {
		err = errors.New("it has another's name")
	}
	if err != nil {
		return nil, fmt.Errorf("%s/%s %w: %w", p.URL(), name, ErrState, err)
	}
	return s, nil
}

func parseState(text []byte) (*State, error) {
	s := &State{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, err
	}
	return s, s.check()
}

// CheckFiles says which of the checkpoint's files are not in the place with their sizes: an error that is [ErrState].
func (s *State) CheckFiles(ctx context.Context, p place.Place) error {
	if s == nil {
		return nil
	}
	for _, f := range s.Files {
		if is, err := f.Exists(ctx, p); err != nil {
			return err
		} else if !is {
			return fmt.Errorf("%s/%s %w: %s is not there with its %d bytes", p.URL(), stateName(s.Position), ErrState, f.Path,
				f.Size)
		}
	}
	return nil
}

// Exists reports whether a file is in the place with its size.
func (f *StateFile) Exists(ctx context.Context, p place.Place) (bool, error) {
	info, err := p.Stat(ctx, f.Path)
	if IsMissing(err) {
		return false, nil
	}
	return err == nil && info.Size == f.Size, err
}

// Copy copies the checkpoint's files into a folder, as they lie in that of a crawl's state, and removes what else lies
// there. It goes on where an earlier one was broken off.
func (s *State) Copy(ctx context.Context, p place.Place, disk vfs.FS, dir string) error {
	if err := errors.Join(s.removeUnlisted(disk, dir), s.checkSpace(disk, dir)); err != nil {
		return err
	}
	for _, f := range s.Files {
		if err := f.copyWithRetry(ctx, p, disk, filepath.Join(dir, filepath.FromSlash(f.Name))); err != nil {
			return fmt.Errorf("copy %s/%s: %w", p.URL(), f.Path, err)
		}
	}
	return nil
}

// checkSpace returns an error if the disk has no room for what is to come.
func (s *State) checkSpace(disk vfs.FS, dir string) error {
	if err := disk.MkdirAll(dir); err != nil {
		return err
	}
	free, err := disk.Free(dir)
	if err != nil {
		return err
	}
	wants := int64(0)
	for _, f := range s.Files {
		has, err := disk.Size(filepath.Join(dir, filepath.FromSlash(f.Name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		wants += max(f.Size-has, 0)
	}
	if uint64(wants) > free {
		return fmt.Errorf("%s has room for %d bytes, and %d bytes of the checkpoint are yet to come: make room there", dir,
			free,
			wants)
	}
	return nil
}

// removeUnlisted removes files from a folder that are not of the checkpoint.
func (s *State) removeUnlisted(disk vfs.FS, dir string) error {
	for _, room := range StateSubdirs {
		names, err := disk.List(filepath.Join(dir, room))
		if err != nil {
			return err
		}
		for _, name := range names {
			if _, is := s.File(room + "/" + name); is {
				continue
			}
			if err := disk.Remove(filepath.Join(dir, room, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyWithRetry copies a file, and tries again: once, and as long as each time more of it has come.
func (f *StateFile) copyWithRetry(ctx context.Context, p place.Place, disk vfs.FS, to string) error {
	if err := disk.MkdirAll(filepath.Dir(to)); err != nil {
		return err
	}
	for had := int64(-1); ; {
		err := f.copy(ctx, p, disk, to)
		if err == nil || ctx.Err() != nil {
			return err
		}
		has, sizeErr := disk.Size(to)
		if sizeErr != nil || has <= had {
			return err
		}
		had = has
	}
}

// copy goes on with a file from what is there of it, and takes it away again if the whole is not what it was.
func (f *StateFile) copy(ctx context.Context, p place.Place, disk vfs.FS, to string) (err error) {
	sum := sha256.New()
	has, err := hashOf(disk, to, sum)
	if err == nil && has < max(f.Size, 1) { // an empty one is made, too
		var n int64
		n, err = f.append(ctx, p, disk, to, has, sum)
		has += n
	}
	if err == nil && (has != f.Size || hex.EncodeToString(sum.Sum(nil)) != f.SHA256) {
		err = errors.Join(fmt.Errorf("it has not the %d bytes that were brought there", f.Size), vfs.TruncateTo(disk, to, 0))
	}
	return err
}

// append adds what the place has of a file from an offset on.
func (f *StateFile) append(ctx context.Context, p place.Place, disk vfs.FS, to string, from int64,
	sum io.Writer) (n int64,
	err error) {
	src, err := p.Open(ctx, f.Path, from, f.Size-from+1)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	dst, err := disk.Append(to)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	return io.Copy(io.MultiWriter(dst, sum), src)
}

// hashOf hashes what is in a file, and returns how long it is: 0 if there is none.
func hashOf(disk vfs.FS, name string, sum io.Writer) (n int64, err error) {
	src, err := disk.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(sum, src)
	return n, errors.Join(err, src.Close())
}

// RemoveOtherCheckpoints removes what lies in a place of checkpoints and is not of this one; of a nil one, all.
func (s *State) RemoveOtherCheckpoints(ctx context.Context, p place.Place) error {
	keep := map[string]bool{}
	if s != nil {
		keep[stateName(s.Position)] = true
		for _, f := range s.Files {
			keep[f.Path] = true
		}
	}
	all, err := p.List(ctx, StateDir)
	if err != nil {
		return err
	}
	for _, info := range all { // those that name files first: none is to name what is gone
		if name := StateDir + "/" + info.Name; !info.IsDir && !keep[name] {
			if err := p.Remove(ctx, name); err != nil {
				return err
			}
		}
	}
	for _, info := range all {
		if info.IsDir {
			if err := removeFiles(ctx, p, StateDir+"/"+info.Name, keep); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeFiles removes files of a folder that are not to be kept: at once where all are not.
func removeFiles(ctx context.Context, p place.Place, dir string, keep map[string]bool) error {
	var gone []string
	some := false
	err := place.Walk(ctx, p, dir, func(name string, _ place.Info) error {
		if some = some || keep[name]; !keep[name] {
			gone = append(gone, name)
		}
		return nil
	})
	if err == nil && !some {
		return p.Remove(ctx, dir)
	}
	for _, name := range gone {
		if err == nil {
			err = p.Remove(ctx, name)
		}
	}
	return err
}
