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

// LostRecords are pages of a dead node whose records were lost with its disk. The new owners of their hosts fetch them
// again. A page's record is in one of the files that grew in its batch of the journal.
type LostRecords struct {
	// Safe reports whether record files, up to the given lengths, are stored elsewhere.
	Safe func(grown []store.Mark) bool
	Disk vfs.FS
	File string // file with the pages' items, until all is read

	digestLimit int // maximum number of digests; 0 means maxDigests
	pages       int64
	batchLost   bool                // the records of the current batch are lost
	digests     map[uint64]struct{} // hashes of the digests of lost records; records that refer to them are useless
	// hosts transferred to other nodes, with the number of items in the file at that time
	forgotten   map[string]int64
	hosts       map[string]bool     // hosts of pages to be fetched again
	inFrontier  map[uint64]struct{} // hashes of those URLs that are also in the frontier, which does not mark them
	seed        maphash.Seed
	file        vfs.File
	out         *bufio.Writer
	n, requeued int64 // items in the file, and how many of them are itemRequeued
}

// The kind of an item in the file: it is pending nowhere else; it is also in the frontier on disk; or it was queued
// again after the visit, to be fetched whatever happened to its record.
const (
	itemOnlyHere byte = iota
	itemInFrontier
	itemRequeued
)

// maxDigests limits the digests of lost records, to about 40 MB. When it is reached, every reference is assumed to be
// to a lost record.
const maxDigests = 1 << 21

// Pages returns the number of lost pages, after BuildHolding.
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

// begin reads the marks of a batch in advance, because they follow the entries.
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

// checkLost queues the URL of a visit again if its record is lost, and reports whether it is.
func (s *replay) checkLost(v *entry.Done) bool {
	if !s.lost.isLost(v) {
		return false
	}
	if err := s.recordLost(v.URL); err != nil && s.fault == nil {
		s.fault = fmt.Errorf("store %s to be fetched again: %w", v.URL, err)
	}
	return true
}

// isLost reports whether the record of a visit is lost. A visit without a response has none.
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

// refersToLost reports whether a record seems to have no payload of its own, but to refer to a lost record, of a page
// or of an error response.
func (l *LostRecords) refersToLost(v *entry.Done) bool {
	if v.Ref.ID != "" || v.Meta.Digest == [20]byte{} || v.Meta.Digest == ofNothing || len(l.digests) == 0 {
		return false
	}
	_, is := l.digests[maphash.Bytes(l.seed, v.Meta.Digest[:])]
	return is || l.isFull()
}

func (l *LostRecords) isFull() bool { return len(l.digests) >= cmp.Or(l.digestLimit, maxDigests) }

// recordLost stores the item of a visited URL whose record is lost. If the frontier has the item on disk, it stays
// there, too, because its host may be transferred to another node. A checkpoint newer than the visit does not have it.
func (s *replay) recordLost(url string) error {
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
			return err // robots.txt is not a URL of the crawl
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

// recordRequeued records an item that was queued again, possibly for a page that was fetched before. It is fetched
// once, and not again because an earlier record of it is lost.
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

// forget records hosts that were transferred to other nodes.
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
	anew := map[uint64]int64{} // index in the file where a URL was last queued again
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
			s.Views.Frontier.Suppress(it.URL) // one of the two items
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
			return fmt.Errorf("read the URLs to be fetched again: %w", err)
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

// Close closes and removes the file.
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
