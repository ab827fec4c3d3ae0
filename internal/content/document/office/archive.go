package office

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"io"
	"net/url"
	"path"
	"strings"

	"kumo/internal/content/document"
)

// An archive is a ZIP archive whose entries are read within limits. Sizes are counted, not taken from its headers.
type archive struct {
	entries   map[string]*zip.File // by cleanName
	duplicate string               // a name that two entries have; "" if there is none
	limits    document.Limits
	inflated  int64    // of all entries
	deflated  *counter // compressed bytes of the entry that is being opened; nil if it is stored
}

// directoryBytes is how many bytes of the central directory are read for each entry that is allowed.
const directoryBytes = 256

// freeInflated is how many bytes of an entry are inflated at any ratio.
const freeInflated = 1 << 20

func openArchive(f document.File, lim document.Limits) (*archive, error) {
	a := &archive{limits: lim, entries: map[string]*zip.File{}}
	bounded := &boundedFile{File: f, left: int64(lim.Entries)*directoryBytes + 1<<20}
	z, err := zip.NewReader(bounded, f.Size())
	var known *document.Error
	switch {
	case errors.As(err, &known):
		return nil, known
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return nil, document.Errorf(document.Broken, "open ZIP archive: %w", err)
	case len(z.File) > lim.Entries:
		return nil, tooManyEntries(lim)
	}
	bounded.opened = true
	z.RegisterDecompressor(zip.Deflate, func(r io.Reader) io.ReadCloser {
		a.deflated = &counter{r: r}
		return flate.NewReader(a.deflated)
	})
	for _, e := range z.File {
		name := cleanName(e.Name)
		if strings.HasSuffix(e.Name, "/") {
			continue
		}
		if a.entries[name] != nil {
			a.duplicate = e.Name
			continue
		}
		a.entries[name] = e
	}
	return a, nil
}

func tooManyEntries(lim document.Limits) *document.Error {
	return document.Errorf(document.TooLarge, "the archive has more than %d entries", lim.Entries)
}

// boundedFile limits the bytes that are read until the archive is open.
type boundedFile struct {
	document.File
	left   int64
	opened bool
}

func (f *boundedFile) ReadAt(b []byte, at int64) (int, error) {
	if f.opened {
		return f.File.ReadAt(b, at)
	}
	if f.left -= int64(len(b)); f.left < 0 {
		return 0, document.Errorf(document.TooLarge, "the directory of the archive is too long")
	}
	return f.File.ReadAt(b, at)
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// cleanName returns the form of a name under which entries are found: names of parts ignore case, and some writers
// use backslashes.
func cleanName(name string) string {
	return strings.TrimPrefix(path.Clean("/"+strings.ToLower(strings.ReplaceAll(name, `\`, "/"))), "/")
}

// resolve returns the name of an entry that another one refers to.
func resolve(from, ref string) string {
	ref, _, _ = strings.Cut(ref, "#")
	if unescaped, err := url.PathUnescape(ref); err == nil {
		ref = unescaped
	}
	if strings.HasPrefix(ref, "/") {
		return cleanName(ref)
	}
	return cleanName(path.Join(path.Dir(from), ref))
}

func (a *archive) has(name string) bool { return a.entries[cleanName(name)] != nil }

// open opens an entry.
func (a *archive) open(name string) (*entryReader, error) {
	e := a.entries[cleanName(name)]
	switch {
	case e == nil:
		return nil, document.Errorf(document.Broken, "the archive has no entry %s", clip(name))
	case e.Flags&1 != 0:
		return nil, document.Errorf(document.Encrypted, "entry %s of the archive needs a password", clip(name))
	}
	a.deflated = nil
	r, err := e.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil, document.Errorf(document.Unsupported, "entry %s has compression method %d", clip(name), e.Method)
	} else if err != nil {
		return nil, document.Errorf(document.Broken, "open entry %s: %w", clip(name), err)
	}
	return &entryReader{archive: a, name: name, r: r, deflated: a.deflated}, nil
}

// An entryReader reads an entry within the limits.
type entryReader struct {
	archive  *archive
	name     string
	r        io.ReadCloser
	n        int64    // bytes read
	deflated *counter // compressed bytes read; nil if the entry is stored
	err      error
}

func (e *entryReader) Read(b []byte) (n int, err error) {
	if e.err != nil {
		return 0, e.err
	}
	a := e.archive
	n, err = e.r.Read(b)
	e.n += int64(n)
	a.inflated += int64(n)
	switch {
	case a.inflated > a.limits.Inflated:
		err = document.Errorf(document.TooLarge, "the archive has more than %d inflated bytes", a.limits.Inflated)
	case e.deflated != nil && e.n > freeInflated && e.n/a.limits.Ratio > e.deflated.n:
		err = document.Errorf(document.TooLarge, "entry %s inflates to more than %d times its size", clip(e.name),
			a.limits.Ratio)
	case err != nil && !errors.Is(err, io.EOF):
		err = document.Errorf(document.Broken, "read entry %s: %w", clip(e.name), err)
	}
	e.err = err
	return n, err
}

func (e *entryReader) close() { _ = e.r.Close() } // it reads only

// bytes reads an entry of at most max bytes.
func (a *archive) bytes(name string, max int) ([]byte, error) {
	e, err := a.open(name)
	if err != nil {
		return nil, err
	}
	defer e.close()
	b, err := io.ReadAll(io.LimitReader(e, int64(max)+1))
	if err == nil && len(b) > max {
		b, err = b[:max], document.Errorf(document.TooLarge, "entry %s has more than %d bytes", clip(name), max)
	}
	return b, err
}
