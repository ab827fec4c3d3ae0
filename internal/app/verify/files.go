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

// committedLength returns the committed length of a file: that in the journal if the file may grow. It is 0 if the file
// does not exist.
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
		v.fault(Fault{Check: check, File: name, Offset: size, What: fmt.Sprintf("the journal records %d bytes, "+
			"but the file has %d",
			mark, size), Remedy: "restore the file from a copy; if there is none, " + remedy})
	case size > mark && grows:
		v.add(Fault{Check: check, File: name, Offset: mark, What: fmt.Sprintf("%d bytes are %s", size-mark, notCommitted)})
		return mark, nil
	}
	return size, nil
}

type line struct {
	at   int64
	text []byte // without the newline
}

// eachLine calls f with the committed lines of a file, and counts them. An error of f is a fault of the line.
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
		v.fault(Fault{Check: check, File: name, Offset: length - torn, What: "the last line is incomplete"})
	}
	return n, err
}

var errStop = errors.New("verification cannot continue")

// A stopError ends reading, unlike a fault in a line.
type stopError struct{ err error }

func (s stopError) Error() string        { return s.err.Error() }
func (s stopError) Unwrap() error        { return s.err }
func (s stopError) Is(target error) bool { return target == errStop }

// asStop converts an error of the verification itself.
func asStop(err error) error {
	if err == nil {
		return nil
	}
	return stopError{err}
}

const progressEvery = 8 << 20 // bytes

// progress reports progress after n more bytes.
func (v *verifier) progress(check string, done, total, n int64) error {
	if done/progressEvery == (done-n)/progressEvery {
		return nil
	}
	if v.cfg.Progress != nil {
		v.cfg.Progress(Progress{check, done, total})
	}
	return v.ctx.Err()
}

// readBytes reports the progress of all WARC files after n more bytes of one of them.
func (v *verifier) readBytes(n int64) error {
	v.reading.Lock()
	defer v.reading.Unlock()
	v.reading.done += n
	return v.progress(checkWARC, v.reading.done, v.reading.total, n)
}
