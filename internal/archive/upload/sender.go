package upload

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"kumo/internal/archive/away"
	"kumo/internal/archive/place"
)

// A sender guards the content of uploaded files: a file counts as uploaded when the location has its bytes, by SHA-256.
//
// A place.Uploader compares digests itself. From other locations the file is read back.
type sender struct {
	cfg   *Config
	there *away.Manifest
}

// send uploads a file unless it exists: an earlier process may have ended before it recorded the file.
func (s *sender) send(ctx context.Context, f pendingFile) (sum digest, err error) {
	src, err := s.cfg.Disk.OpenAt(s.cfg.path(f.name))
	if err != nil {
		return sum, err
	}
	defer func() { _ = src.Close() }() // opened for reading only
	if sum, err = digestOf(io.NewSectionReader(src, 0, f.size)); err != nil {
		return sum, err
	}
	_, checks := s.cfg.Place.(place.Uploader)
	if !checks {
		if is, err := s.has(ctx, f, sum); is || err != nil {
			return sum, err
		}
	}
	return sum, s.put(ctx, f.name, src, f.size, sum)
}

// put uploads a file and verifies it.
func (s *sender) put(ctx context.Context, name string, src io.ReaderAt, size int64, sum digest) error {
	err := place.Upload(ctx, s.cfg.Place, name, src, size, sum)
	if _, checks := s.cfg.Place.(place.Uploader); err != nil || checks {
		return err
	}
	there, err := digestAll(s.cfg.Place.Open(ctx, name, 0, -1))
	if err == nil && there != sum {
		err = fmt.Errorf("the place has other content: its SHA-256 is %x, not %x", there, sum)
	}
	return err
}

// has reports whether a file that is not recorded is in the location.
func (s *sender) has(ctx context.Context, f pendingFile, sum digest) (bool, error) {
	if _, noted := s.there.Get(f.name); noted {
		return false, nil // with other content
	}
	info, err := s.cfg.Place.Stat(ctx, f.name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size != f.size {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	there, err := digestAll(s.cfg.Place.Open(ctx, f.name, 0, -1))
	return there == sum, err
}

type digest = [sha256.Size]byte

// digestAll returns the digest of an open file, and closes it.
func digestAll(src io.ReadCloser, err error) (digest, error) {
	if err != nil {
		return digest{}, err
	}
	sum, err := digestOf(src)
	return sum, errors.Join(err, src.Close())
}

func digestOf(src io.Reader) (digest, error) {
	sum := sha256.New()
	_, err := io.Copy(sum, src)
	return digest(sum.Sum(nil)), err
}
