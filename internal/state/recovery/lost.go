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

// LostRecords are pages of a dead node whose records are gone with its disk: the new owners of their hosts fetch them again. A
// page's record is in one of the files that its batch of the journal names as grown.
type LostRecords struct {
	// Safe reports whether record files are, as long as said, where they outlive the disk.
	Safe func(grown []store.Mark) bool
	Disk vfs.FS
	File string // has the pages' items until all is read

	digestLimit int // digests that are noted; 0: maxDigests
	pages       int64
	batchLost   bool                // the records of the batch at hand
	digests     map[uint64]struct{} // of lost records, hashed: others that refer to them are worth nothing
	forgotten   map[string]int64    // hosts that went to other nodes, and how many items the file had by then
	hosts       map[string]bool     // where pages are to be fetched again
	inFrontier  map[uint64]struct{} // URLs of these that wait on the frontier, which does not say why; hashed
	seed        maphash.Seed
	file        vfs.File
	out         *bufio.Writer
	n, requeued int64 // items in the file, and those of them that are itemRequeued
}

// How an item is in the file: it waits nowhere else; the frontier has it on the disk; or it has come to wait anew, to
// be fetched whatever became of its record.
const (
	itemOnlyHere byte = iota
	itemInFrontier
	itemRequeued
)

// maxDigests is how many digests of lost records are noted, for some 40 MB. Beyond that whatever refers to a record is
// taken to refer to a lost one.
const maxDigests = 1 << 21

// Pages is how many there are, once the state is folded.
func (l *LostRecords) Pages() int64 {
	if l == nil {
		return 0
	}
	return l.pages
}

type grownFiles struct {
	entry.Reader
	marks []store.Mark
}

func (g *grownFiles) Mark(m store.Mark) { g.marks = append(g.marks, m) }

// begin is told of a batch before its entries are: marks come behind these.
func (l *LostRecords) begin(batch []byte) error {
	if l == nil {
		return nil
	}
	g := grownFiles{Reader: entry.NopReader()}
	err := entry.Read(batch, &g)
	l.batchLost = !l.Safe(g.marks)
	return err
}

type lostReader struct {
	entry.Reader
	s *replay
}

func (r lostReader) Done(v entry.Done) { r.s.checkLost(&v) }

func (r lostReader) Recrawl(_ time.Time, it item.Item) { r.s.recordRequeued(&it) }

func (r lostReader) Chunk(c entry.Chunk) {
	if r.s.lost.n == 0 {
		return
	}
	if p := r.s.readChunk(&c); p != nil {
		r.s.recordRequeuedChunk(p)
	}
}

// checkLost keeps what a visit has brought to be fetched again if its record is gone, and reports whether it is.
func (s *replay) checkLost(v *entry.Done) bool {
	if !s.lost.isLost(v) {
		return false
	}
	if err := s.keepLost(v.URL); err != nil && s.fault == nil {
		s.fault = fmt.Errorf("keep %s to be fetched again: %w", v.URL, err)
	}
	return true
}

// isLost reports whether the record of a visit is gone. What was not answered has none.
func (l *LostRecords) isLost(v *entry.Done) bool {
	if l == nil || v.Visit.Status == 0 || !l.batchLost && !l.refersToLost(v) {
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

// refersToLost reports whether a record, for all that is known, has no payload of its own, but refers to a lost one: be it of
// a page or of what came with an error.
func (l *LostRecords) refersToLost(v *entry.Done) bool {
	if v.Ref.ID != "" || v.Meta.Digest == [20]byte{} || v.Meta.Digest == ofNothing || len(l.digests) == 0 {
		return false
	}
	_, is := l.digests[maphash.Bytes(l.seed, v.Meta.Digest[:])]
	return is || l.isFull()
}

func (l *LostRecords) isFull() bool { return len(l.digests) >= cmp.Or(l.digestLimit, maxDigests) }

// keepLost keeps the item of a visited URL whose record is gone. An item that the frontier has on the disk also stays
// there, as its host may go to another node; a checkpoint newer than the visit has it no longer.
func (s *replay) keepLost(url string) error {
	it, waits := s.pending[url]
	if waits {
		delete(s.pending, url)
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
	it.Refetch, it.Tries, it.QueueLast, it.Reported = true, 0, false, false
	how := itemOnlyHere
	if !waits && !s.beforeCheckpoint {
		how = itemInFrontier
	}
	return s.lost.add(&it, how)
}

// recordRequeued is told of an item that comes to wait, perhaps of a page that was fetched before: it is fetched once, and
// not also because an earlier record of it is lost.
func (s *replay) recordRequeued(it *item.Item) {
	if l := s.lost; l != nil && l.n > 0 && (it.Recrawl || it.Refetch) && s.fault == nil {
		s.fault = l.add(it, itemRequeued)
	}
}

func (l *LostRecords) add(it *item.Item, how byte) (err error) {
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
	if how == itemRequeued {
		l.requeued++
	}
	_, err = l.out.Write(item.Append([]byte{how}, "", it))
	return err
}

// forget is told of hosts that have gone to other nodes.
func (l *LostRecords) forget(hosts []string) {
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

func (s *State) restoreLost(l *LostRecords) error {
	if l == nil || l.n == 0 {
		return nil
	}
	if err := l.out.Flush(); err != nil {
		return err
	}
	l.seed = maphash.MakeSeed()
	l.digests, l.hosts, l.inFrontier = nil, map[string]bool{}, map[uint64]struct{}{}
	anew := map[uint64]int64{} // where in the file URLs come anew for the last time
	if l.requeued > 0 {
		err := l.each(func(i int64, how byte, it *item.Item) {
			if how == itemRequeued {
				anew[l.hash(it.URL)] = i
			}
		})
		if err != nil {
			return err
		}
	}
	err := l.each(func(i int64, how byte, it *item.Item) {
		if how == itemRequeued {
			return
		}
		host, hash := s.sliceOf(it), l.hash(it.URL)
		l.hosts[host] = true
		waits := how == itemInFrontier && l.forgotten[host] <= i
		last, again := anew[hash]
		if again = again && last > i; again || waits {
			l.inFrontier[hash] = struct{}{}
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

func (l *LostRecords) hash(url string) uint64 { return maphash.String(l.seed, url) }

func (l *LostRecords) refetch(url string) bool {
	_, is := l.inFrontier[l.hash(url)]
	return is
}

func (l *LostRecords) each(f func(i int64, how byte, it *item.Item)) (err error) {
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
func (l *LostRecords) Close() error {
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
