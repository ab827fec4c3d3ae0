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

// StateDir is the folder in a location with checkpoints of a node's state. Each checkpoint has a file that lists its
// files and is written last, and a folder with the files that the previous checkpoint does not have. No file is
// overwritten.
const StateDir = "state"

// StateSubdirs are the folders of a crawl's state that a checkpoint includes. With the rest of the journal, they
// suffice to resume the crawl.
var StateSubdirs = []string{"seen", "frontier", "abandoned"}

// A State is a checkpoint in a location.
type State struct {
	Position uint64 `json:"position"` // journal position that the checkpoint includes
	// position that the shipped journal must reach to resume from the checkpoint
	RequiredPosition uint64      `json:"relies"`
	Files            []StateFile `json:"files"`
	Sum              string      `json:"sum"` // checksum of the other members
}

// A StateFile is a file of a checkpoint.
type StateFile struct {
	Name   string `json:"name"` // relative to the crawl's state, such as "seen/00000001.run"
	Path   string `json:"at"`   // relative to the location
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // in hexadecimal
}

func (s *State) sum() string {
	of := *s
	of.Sum = ""
	text, _ := json.Marshal(&of) // cannot fail for these types
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

const stateSuffix = ".json"

func stateName(position uint64) string {
	return fmt.Sprintf("%s/%016x%s", StateDir, position, stateSuffix)
}

// StateFolder returns the folder for files that this checkpoint is the first to include.
func StateFolder(position uint64) string { return fmt.Sprintf("%s/%016x", StateDir, position) }

// File returns a file of the checkpoint by its name.
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

// Write writes the list of the checkpoint's files, which must already be in the location.
func (s *State) Write(ctx context.Context, p place.Place) error {
	s.Sum = s.sum()
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	if len(text) >= maxState {
		return fmt.Errorf("checkpoint of %d files: the list has %d bytes, the limit is %d", len(s.Files),
			len(text),
			maxState)
	}
	return WriteSmall(ctx, p, stateName(s.Position), append(text, '\n'))
}

// check validates a checkpoint: names of files become paths on this machine's disk.
func (s *State) check() error {
	if s.Sum != s.sum() || s.RequiredPosition < s.Position {
		return errors.New("the checksum is wrong")
	}
	names, size := map[string]bool{}, int64(0)
	for _, f := range s.Files {
		if names[f.Name] || f.Size > math.MaxInt64-size {
			return fmt.Errorf("%q is listed twice, or the total size overflows", f.Name)
		}
		names[f.Name], size = true, size+max(f.Size, 0)
		e := Entry{Name: f.Name, Size: f.Size, SHA256: f.SHA256}
		if err := errors.Join(e.check(), place.ValidName(f.Path)); err != nil {
			return err
		}
		if room, name := path.Split(f.Name); !slices.Contains(StateSubdirs, strings.TrimSuffix(room, "/")) ||
			strings.ContainsAny(name, `:\`) {
			return fmt.Errorf("invalid file name %q", f.Name)
		}
	}
	return nil
}

const maxState = 64 << 20 // bytes; about a quarter of a million files

// ErrState means that a checkpoint in a location is damaged.
var ErrState = errors.New("is not a valid checkpoint")

// ReadState reads the newest readable checkpoint in a location. It returns nil if there is no checkpoint, and an error
// that wraps [ErrState] if there are some but none is readable.
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
		err = errors.New("the name does not match the position")
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

// CheckFiles returns an error that wraps [ErrState] if a file of the checkpoint is missing or has another size.
func (s *State) CheckFiles(ctx context.Context, p place.Place) error {
	if s == nil {
		return nil
	}
	for _, f := range s.Files {
		if is, err := f.Exists(ctx, p); err != nil {
			return err
		} else if !is {
			return fmt.Errorf("%s/%s %w: %s with %d bytes is missing", p.URL(), stateName(s.Position), ErrState, f.Path,
				f.Size)
		}
	}
	return nil
}

// Exists reports whether the file is in the location with its size.
func (f *StateFile) Exists(ctx context.Context, p place.Place) (bool, error) {
	info, err := p.Stat(ctx, f.Path)
	if IsMissing(err) {
		return false, nil
	}
	return err == nil && info.Size == f.Size, err
}

// Copy copies the checkpoint's files into a folder with the layout of a crawl's state, and removes other files there.
// It continues an interrupted copy.
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

// checkSpace returns an error if the disk lacks space for the remaining files.
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
		return fmt.Errorf("%s has %d bytes of free space, and the rest of the checkpoint needs %d: free some space", dir,
			free,
			wants)
	}
	return nil
}

// removeUnlisted removes files from a folder that the checkpoint does not list.
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

// copyWithRetry copies a file. It retries once, and again whenever a try has copied more of the file.
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

// copy continues a file after the bytes that exist, and empties it if the whole does not match its digest.
func (f *StateFile) copy(ctx context.Context, p place.Place, disk vfs.FS, to string) (err error) {
	sum := sha256.New()
	has, err := hashOf(disk, to, sum)
	if err == nil && has < max(f.Size, 1) { // an empty file is also created
		var n int64
		n, err = f.append(ctx, p, disk, to, has, sum)
		has += n
	}
	if err == nil && (has != f.Size || hex.EncodeToString(sum.Sum(nil)) != f.SHA256) {
		err = errors.Join(fmt.Errorf("the %d bytes do not match the checkpoint's SHA-256", f.Size),
			vfs.TruncateTo(disk, to, 0))
	}
	return err
}

// append appends the bytes of the file in the location from an offset.
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

// hashOf hashes a file, and returns its length; 0 if it does not exist.
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

// RemoveOtherCheckpoints removes the other checkpoints from a location, or all of them if s is nil.
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
	for _, info := range all { // lists first, so that no list names a removed file
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

// removeFiles removes the files of a folder that are not in keep. If it keeps none, it removes the folder at once.
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
