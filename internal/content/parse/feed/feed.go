// Package feed reads sitemaps and sitemap indexes (XML or plain text), RSS, Atom and JSON feeds.
//
// It reads a document as a stream, compressed or not, and yields one entry after the other. At most one record is in
// memory at a time. The format is detected from the content and not from the declared type. The XML reader ignores
// namespaces, element order and missing elements, since many feeds are written by hand.
package feed

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

// A Config limits how much of a feed is read. The zero value means the defaults.
type Config struct {
	MaxBytes int64 // of an uncompressed list; default 50 MiB, the limit of the sitemap protocol
}

// An Entry is a link in a list. Its kind is Listed or Feed depending on the list, or Sitemap in a sitemap index; Image
// or Media for files that belong to another entry.
type Entry struct {
	page.Link
	Modified   time.Time // when the target was last changed or published; zero: unknown
	Priority   float64   // among the site's pages, from 0 to 1; default 0.5
	SameRecord bool      // belongs to the same element of the list as the previous entry
}

// ErrTooLarge means that a list exceeds the size limit.
var ErrTooLarge = errors.New("larger than the limit")

// ErrFormat means that a list has no supported format.
var ErrFormat = errors.New("neither sitemap nor feed")

// Read yields the entries of the list in r, whose URL is url. It skips unusable URLs. An error comes last: the list is
// truncated there, and the entries before it are valid.
func Read(r io.Reader, url string, cfg Config) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		s, err := open(r, url, cfg)
		if err == nil {
			s.yield = func(e Entry) bool { return yield(e, nil) }
			err = s.read()
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(Entry{}, fmt.Errorf("read list %.200s: %w", url, err))
		}
	}
}

// A stream is a list being read.
type stream struct {
	in    *bufio.Reader
	base  weburl.URL
	room  []byte
	yield func(Entry) bool
}

// errStop means that the caller wants no more entries.
var errStop = errors.New("enough")

func open(r io.Reader, url string, cfg Config) (*stream, error) {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = 50 << 20
	}
	base, err := weburl.Parse(url)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(r)
	if head, _ := in.Peek(3); string(head) == "\x1F\x8B\x08" {
		packed, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = bufio.NewReader(packed)
	}
	in, err = decoded(bufio.NewReader(&limited{in, cfg.MaxBytes}))
	return &stream{in: in, base: base}, err
}

// limited is an io.LimitReader that fails with ErrTooLarge at the limit.
type limited struct {
	in   io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, ErrTooLarge
	}
	n, err := l.in.Read(p[:min(int64(len(p)), l.left+1)])
	if l.left -= int64(n); l.left < 0 {
		return n - 1, ErrTooLarge
	}
	return n, err
}

// read detects the format of the list from its beginning, and reads it.
func (s *stream) read() error {
	for {
		c, err := s.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if isSpace(c) {
			continue
		}
		if err := s.in.UnreadByte(); err != nil {
			return err
		}
		switch c {
		case '<':
			return s.xml()
		case '{':
			return s.json()
		}
		return s.text()
	}
}

// addRecord yields the entries of a record.
func (s *stream) addRecord(base weburl.URL, r *record) error {
	more := false
	for _, l := range r.links {
		e := r.entry
		e.Kind, e.Rel, e.Lang, e.SameRecord = l.kind, l.rel, l.lang, more
		usable, err := s.add(base, l.url, e)
		if err != nil {
			return err
		}
		more = more || usable
	}
	return nil
}

// add yields an entry. It reports whether the URL is usable; otherwise it yields nothing.
func (s *stream) add(base weburl.URL, ref string, e Entry) (usable bool, err error) {
	if ref == "" {
		return false, nil
	}
	url, err := base.AppendCanonical(s.room[:0], []byte(ref))
	if err != nil {
		return false, nil //nolint:nilerr // a URL that cannot be used is left out
	}
	s.room = url
	e.URL = string(url)
	if !s.yield(e) {
		return false, errStop
	}
	return true, nil
}

// text reads a sitemap in plain text: one URL per line. It skips lines that are longer than any URL.
func (s *stream) text() error {
	found := false
	for {
		line, err := s.line()
		if ref := trim(line); isAddress(ref) {
			found = true
			if _, err := s.add(s.base, ref, Entry{Link: page.Link{Kind: page.Listed}, Priority: defaultPriority}); err != nil {
				return err
			}
		} else if len(ref) > 0 && !found {
			return ErrFormat
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// line reads a line, "" if it is too long.
func (s *stream) line() (string, error) {
	line, err := s.in.ReadSlice('\n')
	text := string(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = s.in.ReadSlice('\n')
		text = ""
	}
	return text, err
}

// defaultPriority is the priority of a page without one.
const defaultPriority = 0.5
