package recovery

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"kumo/internal/entry"
	"kumo/internal/item"
	"kumo/internal/seen"
	"kumo/internal/store"
	"kumo/internal/vfs"
)

// Lost are pages that a dead node had fetched, and whose records are gone with its disk: they are fetched again, by
// whoever has their hosts now. A batch of the journal names the record files that have grown with it, so a page's record
// is in one of those of its batch.
type Lost struct {
	// Safe reports whether record files are, as long as said, where they outlive the disk.
	Safe func(grown []store.Mark) bool
	Disk vfs.FS
	File string // has the pages' items until all is read

	n         int64
	gone      bool              // the records of the batch at hand
	digests   map[[20]byte]bool // of lost records: others that refer to them are worth nothing
	forgotten map[string]int64  // hosts that went to other nodes, and how many pages were lost by then
	hosts     map[string]bool   // where pages are to be fetched again
	file      vfs.File
	out       *bufio.Writer
}

// Pages is how many there are.
func (l *Lost) Pages() int64 {
	if l == nil {
		return 0
	}
	return l.n
}

// grown collects the record files that a batch names.
type grown struct {
	entry.Reader
	marks []store.Mark
}

func (g *grown) Mark(m store.Mark) { g.marks = append(g.marks, m) }

// begin is told of a batch before its entries are: marks come behind these.
func (l *Lost) begin(batch []byte) error {
	if l == nil {
		return nil
	}
	g := grown{Reader: entry.Nobody()}
	err := entry.Read(batch, &g)
	l.gone = !l.Safe(g.marks)
	return err
}

// early reads of a batch that the views have only what it says of records. A log that is not cut short up to its
// checkpoint has some.
func (s *State) early(batch []byte) error {
	if s.lost == nil {
		return nil
	}
	return cmp.Or(s.lost.begin(batch), entry.Read(batch, records{entry.Nobody(), s}), s.fault)
}

// records reads of a batch which pages were fetched.
type records struct {
	entry.Reader
	s *State
}

func (r records) Done(v entry.Done) { r.s.mayLose(&v) }

// mayLose keeps what a visit has brought to be fetched again if its record is gone, and reports whether it is.
func (s *State) mayLose(v *entry.Done) bool {
	if !s.lost.has(v) {
		return false
	}
	if err := s.lose(v.URL); err != nil && s.fault == nil {
		s.fault = fmt.Errorf("keep %s to be fetched again: %w", v.URL, err)
	}
	return true
}

// has reports whether the record of a visit is gone. What was not answered has none.
func (l *Lost) has(v *entry.Done) bool {
	if l == nil || v.Visit.Status == 0 || !l.gone && !(v.Visit.Duplicate && l.digests[v.Meta.Digest]) {
		return false
	}
	if v.Ref.ID != "" {
		if l.digests == nil {
			l.digests = map[[20]byte]bool{}
		}
		l.digests[v.Meta.Digest] = true
	}
	return true
}

// lose keeps the item of a visited URL whose record is gone. Where the frontier has it on the disk it stays there, and is
// kept beside that in case its host goes to another node: for then all that waits there goes. A checkpoint that is
// newer than the visit has it no longer.
func (s *State) lose(url string) error {
	it, waits := s.waiting[url]
	if waits {
		delete(s.waiting, url)
		delete(s.Guessed, url)
	} else {
		db, ok := s.Views.Seen.(*seen.DB)
		if !ok {
			return nil
		}
		e, _, err := db.Get(url)
		if err != nil || e.State == seen.Unknown {
			return err // robots.txt is no URL of the crawl
		}
		it = item.Item{URL: url, Depth: e.Depth, From: e.From}
	}
	it.Again, it.Tries, it.Late, it.Told = true, 0, false, false
	return s.lost.keep(&it, !waits && !s.behind)
}

func (l *Lost) keep(it *item.Item, elsewhere bool) (err error) {
	if l.out == nil {
		if err := l.Disk.MkdirAll(filepath.Dir(l.File)); err != nil {
			return err
		}
		if l.file, err = l.Disk.Append(l.File); err != nil {
			return err
		}
		l.out = bufio.NewWriter(l.file)
	}
	b := []byte{0}
	if elsewhere {
		b[0] = 1
	}
	l.n++
	_, err = l.out.Write(item.Append(b, "", it))
	return err
}

// forget is told of hosts that have gone to other nodes.
func (l *Lost) forget(hosts []string) {
	if l == nil || l.n == 0 {
		return
	}
	if l.forgotten == nil {
		l.forgotten = map[string]int64{}
	}
	for _, host := range hosts {
		l.forgotten[host] = l.n
	}
}

// restore lets all wait that was lost.
func (s *State) restore(l *Lost) (err error) {
	if l.Pages() == 0 {
		return nil
	}
	if err := l.out.Flush(); err != nil {
		return err
	}
	in, err := l.Disk.Open(l.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	l.hosts = map[string]bool{}
	r, buffer := bufio.NewReader(in), []byte(nil)
	for i := range l.n {
		elsewhere, err := r.ReadByte()
		if err == nil {
			buffer, err = readFrame(r, buffer[:0])
		}
		if err != nil {
			return fmt.Errorf("read what is to be fetched again: %w", err)
		}
		var text item.Reader
		it, _, err := text.Read(buffer, "")
		if err != nil {
			return fmt.Errorf("read what is to be fetched again: %w", err)
		}
		host := s.sliceOf(&it)
		l.hosts[host] = true
		if elsewhere == 1 && l.forgotten[host] <= i {
			continue // it waits
		}
		s.Views.Frontier.Restore(host, it)
	}
	return s.Views.Frontier.Err()
}

// readFrame reads the frame of an item, with its length.
func readFrame(r *bufio.Reader, b []byte) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return b, err
	}
	b = binary.AppendUvarint(b, n)
	at := len(b)
	b = append(b, make([]byte, n)...)
	_, err = io.ReadFull(r, b[at:])
	return b, err
}

// Close removes the file.
func (l *Lost) Close() error {
	if l == nil || l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	if gone := l.Disk.Remove(l.File); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
