package verify

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"kumo/internal/state/store"
)

const notCommitted = "not committed yet: the next start cuts them"

func (v *verifier) path(name string) string { return filepath.Join(v.Dir, filepath.FromSlash(name)) }

// committedLength is how much of a file counts. Where it may grow, that is what the journal says. It is 0 for a file that is
// not there.
func (v *verifier) committedLength(check, name string, grows bool) (int64, error) {
	size, err := v.Disk.Size(v.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		size, err = 0, nil
	}
	mark, known := v.marks[name]
	switch {
	case err != nil:
		return 0, err
	case !known && (!grows || v.State == nil):
		return size, nil
	case size < mark:
		v.fault(Fault{Check: check, File: name, Offset: size, What: fmt.Sprintf("the journal says that %d bytes were "+
			"written, %d are here",
			mark, size), Remedy: "bring the file back from a copy; if there is none, " + remedy})
	case size > mark && grows:
		v.note(Fault{Check: check, File: name, Offset: mark, What: fmt.Sprintf("%d bytes are %s", size-mark, notCommitted)})
		return mark, nil
	}
	return size, nil
}

type line struct {
	at   int64
	text []byte // without its end
}

// eachLine calls f with the lines of what is committed of a file, and counts them. What f says of one is a fault.
func (v *verifier) eachLine(check, name string, grows bool, f func(line) error) (n int64, err error) {
	length, err := v.committedLength(check, name, grows)
	if err != nil || length == 0 {
		return 0, err
	}
	src, err := v.Disk.OpenAt(v.path(name))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	torn, err := store.EachLine(io.NewSectionReader(src, 0, length), func(text []byte, at int64) error {
		n++
		if err := f(line{at, text}); errors.Is(err, errStop) {
			return err
		} else if err != nil {
			v.fault(Fault{Check: check, File: name, Offset: at, What: err.Error()})
		}
		read := int64(len(text) + len("\n"))
		return v.progress(check, at+read, length, read)
	})
	if errors.Is(err, errStop) {
		err = errors.Unwrap(err)
	}
	if torn > 0 {
		n++
		v.fault(Fault{Check: check, File: name, Offset: length - torn, What: "the last line has no end"})
	}
	return n, err
}

var errStop = errors.New("verify cannot go on")

// A stop ends reading, unlike what is wrong with a line.
type stopError struct{ err error }

func (s stopError) Error() string        { return s.err.Error() }
func (s stopError) Unwrap() error        { return s.err }
func (s stopError) Is(target error) bool { return target == errStop }

// asStop is for errors of verify itself.
func asStop(err error) error {
	if err == nil {
		return nil
	}
	return stopError{err}
}

const progressEvery = 8 << 20 // bytes

// progress tells of the last n bytes done.
func (v *verifier) progress(check string, done, total, n int64) error {
	if done/progressEvery == (done-n)/progressEvery {
		return nil
	}
	if v.cfg.Progress != nil {
		v.cfg.Progress(Progress{check, done, total})
	}
	return v.ctx.Err()
}
