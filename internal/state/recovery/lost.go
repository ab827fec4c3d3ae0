package recovery

import (
	"bufio"
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/vfs"
	"kumo/internal/state/entry"
	"kumo/internal/state/seen"
	"kumo/internal/state/store"
)

// Lost are pages of a dead node whose records are gone with its disk: the new owners of their hosts fetch them again. A
// page's record is in one of the files that its batch of the journal names as grown.
type Lost struct {
	// Safe reports whether record files are, as long as said, where they outlive the disk.
	Safe func(grown []store.Mark) bool
	Disk vfs.FS
	File string // has the pages' items until all is read

	most      int // digests that are noted; 0: mostDigests
	pages     int64
	gone      bool                // the records of the batch at hand
	digests   map[uint64]struct{} // of lost records, hashed: others that refer to them are worth nothing
	forgotten map[string]int64    // hosts that went to other nodes, and how many items the file had by then
	hosts     map[string]bool     // where pages are to be fetched again
	waiting   map[uint64]struct{} // URLs of these that wait on the frontier, which does not say why; hashed
	seed      maphash.Seed
	file      vfs.File
	out       *bufio.Writer
	n, anew   int64 // items in the file, and those of them that are isAnew
}

// How an item is in the file: it waits nowhere else; the frontier has it on the disk; or it has come to wait anew, to
// be fetched whatever became of its record.
const (
	isHere byte = iota
	isOnDisk
	isAnew
)

// mostDigests is how many digests of lost records are noted, for some 40 MB. Beyond that whatever refers to a record is
// taken to refer to a lost one.
const mostDigests = 1 << 21

// Pages is how many there are, once the state is folded.
func (l *Lost) Pages() int64 {
	if l == nil {
		return 0
	}
	return l.pages
}

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

type records struct {
	entry.Reader
	s *replay
}

func (r records) Done(v entry.Done) { r.s.mayLose(&v) }

func (r records) Recrawl(_ time.Time, it item.Item) { r.s.comesAnew(&it) }

func (r records) Chunk(c entry.Chunk) {
	if r.s.lost.n == 0 {
		return
	}
	if p := r.s.readChunk(&c); p != nil {
		r.s.chunkComesAnew(p)
	}
}

// mayLose keeps what a visit has brought to be fetched again if its record is gone, and reports whether it is.
func (s *replay) mayLose(v *entry.Done) bool {
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
	if l == nil || v.Visit.Status == 0 || !l.gone && !l.refers(v) {
		return false
	}
	if v.Ref.ID != "" && v.Meta.Digest != [20]byte{} && !l.isFull() {
		if l.digests == nil {
			l.digests, l.seed = map[uint64]struct{}{}, maphash.MakeSeed()
		}
		l.digests[maphash.Bytes(l.seed, v.Meta.Digest[:])] = struct{}{}
	}
	return true
}

var ofNothing = sha1.Sum(nil)

// refers reports whether a record, for all that is known, has no payload of its own, but refers to a lost one: be it of
// a page or of what came with an error.
func (l *Lost) refers(v *entry.Done) bool {
	if v.Ref.ID != "" || v.Meta.Digest == [20]byte{} || v.Meta.Digest == ofNothing || len(l.digests) == 0 {
		return false
	}
	_, is := l.digests[maphash.Bytes(l.seed, v.Meta.Digest[:])]
	return is || l.isFull()
}

func (l *Lost) isFull() bool { return len(l.digests) >= cmp.Or(l.most, mostDigests) }

// lose keeps the item of a visited URL whose record is gone. An item that the frontier has on the disk also stays
// there, as its host may go to another node; a checkpoint newer than the visit has it no longer.
func (s *replay) lose(url string) error {
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
	how := isHere
	if !waits && !s.behind {
		how = isOnDisk
	}
	return s.lost.keep(&it, how)
}

// comesAnew is told of an item that comes to wait, perhaps of a page that was fetched before: it is fetched once, and
// not also because an earlier record of it is lost.
func (s *replay) comesAnew(it *item.Item) {
	if l := s.lost; l != nil && l.n > 0 && (it.Recrawl || it.Again) && s.fault == nil {
		s.fault = l.keep(it, isAnew)
	}
}

func (l *Lost) keep(it *item.Item, how byte) (err error) {
	if l.out == nil {
		if err := l.Disk.MkdirAll(filepath.Dir(l.File)); err != nil {
			return err
		}
		if l.file, err = l.Disk.Append(l.File); err != nil {
			return err
		}
		l.out = bufio.NewWriter(l.file)
	}
	l.n++
	if how == isAnew {
		l.anew++
	}
	_, err = l.out.Write(item.Append([]byte{how}, "", it))
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

func (s *State) restore(l *Lost) error {
	if l == nil || l.n == 0 {
		return nil
	}
	if err := l.out.Flush(); err != nil {
		return err
	}
	l.seed = maphash.MakeSeed()
	l.digests, l.hosts, l.waiting = nil, map[string]bool{}, map[uint64]struct{}{}
	anew := map[uint64]int64{} // where in the file URLs come anew for the last time
	if l.anew > 0 {
		err := l.each(func(i int64, how byte, it *item.Item) {
			if how == isAnew {
				anew[l.hash(it.URL)] = i
			}
		})
		if err != nil {
			return err
		}
	}
	err := l.each(func(i int64, how byte, it *item.Item) {
		if how == isAnew {
			return
		}
		host, hash := s.sliceOf(it), l.hash(it.URL)
		l.hosts[host] = true
		waits := how == isOnDisk && l.forgotten[host] <= i
		last, again := anew[hash]
		if again = again && last > i; again || waits {
			l.waiting[hash] = struct{}{}
		}
		switch {
		case again && waits:
			s.Views.Frontier.Suppress(it.URL) // one of the two
		case again:
		case waits:
			l.pages++
		default:
			l.pages++
			s.Views.Frontier.Restore(host, *it)
		}
	})
	return cmp.Or(err, s.Views.Frontier.Err())
}

func (l *Lost) hash(url string) uint64 { return maphash.String(l.seed, url) }

func (l *Lost) refetch(url string) bool {
	_, is := l.waiting[l.hash(url)]
	return is
}

func (l *Lost) each(f func(i int64, how byte, it *item.Item)) (err error) {
	in, err := l.Disk.Open(l.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	r, buffer := bufio.NewReader(in), []byte(nil)
	for i := range l.n {
		how, err := r.ReadByte()
		if err == nil {
			buffer, err = readFrame(r, buffer[:0])
		}
		var it item.Item
		if err == nil {
			var text item.Reader
			it, _, err = text.Read(buffer, "")
		}
		if err != nil {
			return fmt.Errorf("read what is to be fetched again: %w", err)
		}
		f(i, how, &it)
	}
	return nil
}

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
