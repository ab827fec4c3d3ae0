// Package seeds reads seed URLs from user input and from files of any size.
package seeds

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"kumo/internal/base/advice"
	"kumo/internal/base/weburl"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/entry"
)

// A File is a file of seeds, one URL per line, that was read once to count the seeds and find invalid lines. It stays
// open and is read again, in parts, when the seeds are queued; so it may have gigabytes.
type File struct {
	Name   string // "-": standard input
	Digest string // SHA-256 of the content, in hexadecimal
	Count  int64  // lines with a seed
	Bad    int64  // lines with an invalid seed
	Faults []Fault
	First  []string // the first seeds, canonical; all of them if Few
	commas int64    // seeds with a comma

	Bytes io.ReaderAt // the content, for further reads
	Size  int64

	done func() error
}

var _ crawl.SeedList = (*File)(nil)

// A Fault is an invalid line.
type Fault struct {
	Line int64
	Text string // cut if it is long
	Why  error
}

const (
	// FewSeeds is how many seeds a crawl's settings list at most; for more, they name the file.
	FewSeeds = 100

	maxFaults  = 20      // reported one by one
	maxSpooled = 1 << 20 // bytes of standard input kept in memory
	readBytes  = 256 << 10
	partSeeds  = 1024
)

// OpenFile reads a file of seeds, or standard input if the name is "-". Input that cannot be read twice is copied to a
// temporary file, which Close removes. progress is called from time to time with the number of lines read; it may be
// nil.
func OpenFile(ctx context.Context, name string, stdin io.Reader, progress func(lines int64)) (_ *File, err error) {
	f := &File{Name: name, done: func() error { return nil }}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if progress == nil {
		progress = func(int64) {}
	}
	sum := sha256.New()
	check := &checker{file: f, progress: progress}
	in := &lineReader{each: check.line}
	if err := f.open(ctx, stdin, func(block []byte) error {
		sum.Write(block)
		return in.write(block)
	}); err != nil {
		return nil, err
	}
	if err := in.end(); err != nil {
		return nil, err
	}
	f.Digest = hex.EncodeToString(sum.Sum(nil))
	return f, nil
}

// open makes the content available for further reads, and passes it to see once.
func (f *File) open(ctx context.Context, stdin io.Reader, see func([]byte) error) error {
	in, ok := stdin.(*os.File)
	if f.Name != "-" {
		file, err := os.Open(f.Name)
		if err != nil {
			return advice.Usage("%w", err)
		}
		in, ok, f.done = file, true, file.Close
	}
	if ok {
		info, err := in.Stat()
		if err == nil && info.IsDir() {
			return advice.Usage("%s is a folder: give a file of URLs", f.Name)
		}
		if at, failed := in.Seek(0, io.SeekCurrent); err == nil && failed == nil && at == 0 && info.Mode().IsRegular() {
			f.Bytes, f.Size = in, info.Size()
			return pump(ctx, io.NewSectionReader(in, 0, f.Size), see)
		}
		stdin = in
	}
	return f.spool(ctx, stdin, see)
}

// spool copies input that cannot be read twice to memory or, if it is large, to a temporary file.
func (f *File) spool(ctx context.Context, in io.Reader, see func([]byte) error) error {
	var kept bytes.Buffer
	var tmp *os.File
	keep := func(block []byte) error {
		f.Size += int64(len(block))
		if tmp == nil && kept.Len()+len(block) <= maxSpooled {
			kept.Write(block)
			return see(block)
		}
		if tmp == nil {
			var err error
			if tmp, err = os.CreateTemp("", "kumo-seeds-"); err != nil {
				return fmt.Errorf("copy the seeds from standard input: %w", err)
			}
			gone := os.Remove(tmp.Name()) == nil // where open files can be removed, it is freed with the process
			closeSource := f.done
			f.done = func() error {
				err := errors.Join(closeSource(), tmp.Close())
				if !gone {
					err = errors.Join(err, os.Remove(tmp.Name()))
				}
				return err
			}
			if _, err := kept.WriteTo(tmp); err != nil {
				return fmt.Errorf("copy the seeds from standard input: %w", err)
			}
		}
		if _, err := tmp.Write(block); err != nil {
			return fmt.Errorf("copy the seeds from standard input: %w", err)
		}
		return see(block)
	}
	if err := pump(ctx, in, keep); err != nil {
		return err
	}
	if f.Bytes = tmp; tmp == nil {
		f.Bytes = bytes.NewReader(kept.Bytes())
	}
	return nil
}

// pump passes all of in to see, in blocks, until ctx ends, even while a read blocks.
func pump(ctx context.Context, in io.Reader, see func([]byte) error) error {
	type block struct {
		b   []byte
		err error
	}
	full, free := make(chan block), make(chan []byte, 2)
	defer close(free)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	free <- make([]byte, readBytes)
	free <- make([]byte, readBytes)
	go func() {
		for b := range free {
			n, err := in.Read(b[:readBytes])
			select {
			case full <- block{b[:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case got := <-full:
			if err := see(got.b); err != nil {
				return err
			}
			if errors.Is(got.err, io.EOF) {
				return nil
			}
			if got.err != nil {
				return fmt.Errorf("read seeds: %w", got.err)
			}
			free <- got.b
		}
	}
}

// Close closes the file.
func (f *File) Close() error {
	err := f.done()
	f.done = func() error { return nil }
	return err
}

// Few reports whether First has all seeds.
func (f *File) Few() bool { return f.Count <= FewSeeds }

// Title returns the file's name for display.
func (f *File) Title() string {
	if f.Name == "-" {
		return "standard input"
	}
	return f.Name
}

// Setting returns a description of the file for the crawl's settings.
func (f *File) Setting() string {
	return fmt.Sprintf("%s, %d URLs, sha256:%s", f.Title(), f.Count, f.Digest)
}

// List implements crawl.SeedList.
func (f *File) List() entry.SeedListMark {
	return entry.SeedListMark{Digest: f.Digest, Name: f.Title(), Seeds: f.Count}
}

// Each implements crawl.SeedList. It skips invalid lines, which OpenFile has reported.
func (f *File) Each(from int64, each func(seeds []weburl.URL, end int64) error) error {
	part := make([]weburl.URL, 0, partSeeds)
	in := &lineReader{offset: from, more: from > 0}
	in.each = func(line string, end int64) error {
		if line = seedOf(line); line != "" {
			if u, err := parseSeed(line); err == nil {
				part = append(part, u)
			}
		}
		if len(part) < partSeeds {
			return nil
		}
		err := each(part, end)
		part = part[:0]
		return err
	}
	err := pump(context.Background(), io.NewSectionReader(f.Bytes, from, f.Size-from), in.write)
	if err == nil {
		err = in.end()
	}
	if err == nil && len(part) > 0 {
		err = each(part, f.Size)
	}
	return err
}

// A checker counts seeds and collects invalid lines.
type checker struct {
	file     *File
	number   int64
	progress func(int64)
}

func (c *checker) line(line string, _ int64) error {
	if c.number++; c.number&0xffff == 0 {
		c.progress(c.number)
	}
	s := seedOf(line)
	if s == "" {
		return nil
	}
	f := c.file
	u, err := parseSeed(s)
	if err != nil {
		if f.Bad++; len(f.Faults) < maxFaults {
			f.Faults = append(f.Faults, Fault{Line: c.number, Text: clip(s), Why: err})
		}
		return nil
	}
	if hasComma(s) {
		f.commas++
	}
	if f.Count++; len(f.First) < FewSeeds {
		f.First = append(f.First, strings.Clone(u.String()))
	}
	return nil
}

// Warning returns a warning about a likely mistake in the file; "" if there is none.
func (f *File) Warning() string {
	if f.commas < 2 || f.commas < f.Count {
		return ""
	}
	return fmt.Sprintf("%s: all %d seeds contain a comma and are used as they are (%s): if the file is a table, "+
		"give a file of its URLs alone",
		f.Title(), f.Count, f.First[0])
}

const maxFaultText = 80

func clip(s string) string {
	if len(s) <= maxFaultText {
		return s
	}
	return strings.ToValidUTF8(s[:maxFaultText], "") + "…"
}

// FaultsError returns an error with the invalid lines; nil if there are none.
func (f *File) FaultsError() error {
	if f.Bad == 0 {
		return nil
	}
	return advice.Usage("%w\nNothing was started. Correct them, or skip them with --skip-bad-seeds",
		errors.New(f.FaultsText()))
}

// FaultsText lists the invalid lines, the first ones one by one.
func (f *File) FaultsText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d lines with seeds cannot be read:", f.Title(), f.Bad, f.Bad+f.Count)
	for _, bad := range f.Faults {
		fmt.Fprintf(&b, "\n  line %d: %q: %v", bad.Line, bad.Text, bad.Why)
	}
	if rest := f.Bad - int64(len(f.Faults)); rest > 0 {
		fmt.Fprintf(&b, "\n  and %d more", rest)
	}
	return b.String()
}
