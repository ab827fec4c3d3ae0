// Package linklog stores the links of a crawl in the order in which they were found.
//
// It contains pages with their links, and importance that other nodes reported. It is the only persistent state of a
// ranking; everything else is rebuilt from it.
//
// A page is a few varints: the number of its links, the number of its links that are not stored here, its own number,
// and the differences between the numbers that it links to. URLs that are found together have similar numbers, so a
// link takes 2 to 3 bytes. Pages are stored in chunks of 256 KiB, in memory as far as the budget allows. The rest is
// read from disk in order. The log also contains, in the same form, the reports to other nodes.
//
// On disk there are three files that only grow: links; keys, with the key of each URL in 5 bytes; and others, with the
// URLs that were reported to other nodes. Opening truncates all of them to a [Mark], like a crawl's record files. The
// part of the links file before a mark ends with checksums of all three: after a power failure, parts of files that were
// not synced may be zeros, which would otherwise be read as other links.
package linklog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"sync"

	"kumo/internal/base/varint"
	"kumo/internal/base/vfs"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/ids"
)

// Config configures a log.
type Config struct {
	Dir    string // used by this log only; "": keep everything in memory, without persistence
	Disk   vfs.FS // file system of Dir; vfs.OS
	Memory int64  // bytes of links to keep in memory, with Dir
}

// A Mark is a durable state of the log.
type Mark struct {
	URLs   int64 // number of known URLs
	Links  int64 // length of the links file
	Others int64 // length of the others file
}

// The files in the log's directory.
const (
	KeysFile   = "keys"
	LinksFile  = "links"
	OthersFile = "others"
)

// Lengths returns the lengths of the files.
func (m Mark) Lengths() (keys, links, others int64) { return keyLen * m.URLs, m.Links, m.Others }

// MarkOf returns the mark for lengths of the files.
func MarkOf(keys, links, others int64) Mark { return Mark{keys / keyLen, links, others} }

// chunkLen is the minimum length of a chunk, which ends at the end of a record.
const chunkLen = 256 << 10

const keyLen = (ids.KeyBits + 7) / 8

// Errors of logs that cannot be read.
var (
	ErrDamaged = errors.New("damaged link log")
	ErrVersion = errors.New("the link log is from an earlier build of kumo, without checksums")
)

// A Log is a log of links. It is safe for concurrent use.
type Log struct {
	cfg Config

	io          sync.Mutex // serializes writing; acquired before mu
	keyFile     vfs.File
	linkFile    vfs.File
	reader      vfs.ReaderAt
	writtenURLs int64
	others      othersFile

	mu     sync.Mutex // guards the fields below
	chunks []chunk    // all but the last are closed
	keys   []byte     // not yet written
	urls   int64
	memory int64 // bytes of closed chunks in memory
	count  int64 // links
	sums   checksums
	dirty  bool // something was added after the last checksums
}

type chunk struct {
	at      int64
	size    int64
	data    []byte // nil: only on disk
	written int64
}

// Open opens a log in the state of a mark; the zero mark creates it.
func Open(cfg Config, mark Mark) (*Log, error) {
	l := &Log{cfg: cfg, chunks: []chunk{{}}}
	if cfg.Dir == "" {
		return l, nil
	}
	if l.cfg.Disk == nil {
		l.cfg.Disk = vfs.OS
	}
	if err := l.open(mark); err != nil {
		return nil, errors.Join(fmt.Errorf("open link log: %w", err), l.Close())
	}
	l.urls, l.writtenURLs = mark.URLs, mark.URLs
	l.others.length, l.others.written = mark.Others, mark.Others
	return l, nil
}

func (l *Log) open(mark Mark) (err error) {
	disk := l.cfg.Disk
	if err := disk.MkdirAll(l.cfg.Dir); err != nil {
		return err
	}
	if l.keyFile, err = l.cut(KeysFile, keyLen*mark.URLs); err != nil {
		return err
	}
	if l.linkFile, err = l.cut(LinksFile, mark.Links); err != nil {
		return err
	}
	if l.others.file, err = l.cut(OthersFile, mark.Others); err != nil {
		return err
	}
	if l.reader, err = disk.OpenAt(l.name(LinksFile)); err != nil {
		return err
	}
	if err := l.check(mark); err != nil { // before load, which trusts the lengths of records
		return err
	}
	return l.load(mark)
}

func (l *Log) name(file string) string { return filepath.Join(l.cfg.Dir, file) }

func (l *Log) cut(file string, length int64) (vfs.File, error) {
	f, err := l.cfg.Disk.Append(l.name(file))
	if err != nil {
		return nil, err
	}
	size, err := l.cfg.Disk.Size(l.name(file))
	switch {
	case err != nil:
	case size < length:
		err = fmt.Errorf("%w: %s has %d bytes, want at least %d", ErrDamaged, file, size, length)
	case size > length:
		err = l.cfg.Disk.Truncate(l.name(file), length)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// load finds the chunks of the links file, by reading it to find the ends of records.
func (l *Log) load(mark Mark) error {
	buf := make([]byte, chunkLen)
	for at := int64(0); at < mark.Links; {
		want := min(int64(len(buf)), mark.Links-at)
		if _, err := l.reader.ReadAt(buf[:want], at); err != nil {
			return err
		}
		n := int64(wholeRecords(buf[:want], mark.URLs))
		switch {
		case n > 0:
		case want < int64(len(buf)) || at+want == mark.Links:
			return fmt.Errorf("%w: no record at offset %d", ErrDamaged, at)
		default:
			buf = make([]byte, min(4*int64(len(buf)), mark.Links-at)) // the record is longer than the buffer
			continue
		}
		c := chunk{at: at, size: n, written: n}
		if l.memory+n <= l.cfg.Memory {
			c.data = append([]byte(nil), buf[:n]...)
			l.memory += n
		}
		at += n
		l.chunks[len(l.chunks)-1] = c
		l.chunks = append(l.chunks, chunk{at: at})
	}
	return nil
}

// wholeRecords returns the length of the complete records at the front of b.
func wholeRecords(b []byte, urls int64) (n int) {
	var p rank.Page
	nobody := Reader{Page: func(*rank.Page) {}, Contribution: func(Contribution) {}}
	for d := (decoder{Reader: varint.Reader{Rest: b}, urls: uint64(urls)}); len(d.Rest) > 0 && d.record(&nobody, &p); {
		n = len(b) - len(d.Rest)
	}
	return n
}

// Close closes the files. Data that was not synced may be lost.
func (l *Log) Close() (err error) {
	l.io.Lock()
	defer l.io.Unlock()
	for _, c := range []io.Closer{l.keyFile, l.linkFile, l.others.file, l.reader} {
		if c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	l.keyFile, l.linkFile, l.others.file, l.reader = nil, nil, nil, nil
	return err
}

// AddPage adds a page, preceded by the keys of its new URLs. It never waits for the disk.
func (l *Log) AddPage(fresh []ids.Key, p *rank.Page) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.appendKeys(fresh)
	c := l.last()
	b := varint.Writer(c.data)
	b.Uint(uint64(len(p.Links)) << kindBits) // pageRecord
	b.Uint(uint64(max(0, p.Out-len(p.Links))))
	b.Uint(uint64(p.ID))
	before := rank.ID(0)
	for _, to := range p.Links {
		b.Uint(uint64(to - before))
		before = to
	}
	l.count += int64(len(p.Links))
	l.extendChunk(c, b)
}

// AddKnown adds the keys of URLs that became known in other ways.
func (l *Log) AddKnown(fresh []ids.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.appendKeys(fresh)
}

// A Contribution is the worth of links from other nodes to a URL.
type Contribution struct {
	To    rank.ID
	Worth float32
	Tag   uint32 // distinguishes contributions to the same URL; 0: none
}

// Kinds of records, in the low bits of their first number.
const (
	pageRecord         = iota
	contributionRecord // without tags
	taggedRecord       // contributions with tags
	reportedRecord     // contributions reported to other nodes
	kindBits           = 2
)

// AddContributions adds contributions of other nodes, which must be sorted by number.
func (l *Log) AddContributions(fresh []ids.Key, all []Contribution) {
	kind := contributionRecord
	for _, g := range all {
		if g.Tag != 0 {
			kind = taggedRecord
		}
	}
	l.appendContributions(kind, fresh, all)
}

// AddReported adds a report to another node about one of its URLs.
func (l *Log) AddReported(fresh []ids.Key, one Contribution) {
	l.appendContributions(reportedRecord, fresh, []Contribution{one})
}

func (l *Log) appendContributions(kind int, fresh []ids.Key, all []Contribution) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.appendKeys(fresh)
	c := l.last()
	b := binary.AppendUvarint(c.data, uint64(len(all))<<kindBits|uint64(kind))
	before := rank.ID(0)
	for _, g := range all {
		b = binary.AppendUvarint(b, uint64(g.To-before))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(g.Worth))
		if kind == taggedRecord {
			b = binary.LittleEndian.AppendUint32(b, g.Tag)
		}
		before = g.To
	}
	l.extendChunk(c, b)
}

func (l *Log) appendKeys(fresh []ids.Key) {
	l.urls += int64(len(fresh))
	if l.cfg.Dir == "" {
		return
	}
	before := len(l.keys)
	for _, k := range fresh {
		l.keys = append(l.keys, byte(k), byte(k>>8), byte(k>>16), byte(k>>24), byte(k>>32))
	}
	if len(fresh) > 0 {
		l.sums.keys, l.dirty = extend(l.sums.keys, l.keys[before:]), true
	}
}

func (l *Log) last() *chunk {
	c := &l.chunks[len(l.chunks)-1]
	if c.data == nil {
		c.data = make([]byte, 0, chunkLen+chunkLen/16)
	}
	return c
}

// extendChunk extends a chunk by a record that was appended to its data, and closes it if it is long enough.
func (l *Log) extendChunk(c *chunk, b []byte) {
	if l.cfg.Dir != "" {
		l.sums.links, l.dirty = extend(l.sums.links, b[c.size:]), true
	}
	c.data, c.size = b, int64(len(b))
	if c.size < chunkLen {
		return
	}
	l.memory += c.size
	end := c.at + c.size
	l.evict(c)
	l.chunks = append(l.chunks, chunk{at: end})
}

// evict drops a closed chunk from memory if it is on disk and memory is short.
func (l *Log) evict(c *chunk) {
	if l.cfg.Dir != "" && c.data != nil && c.written == c.size && l.memory > l.cfg.Memory {
		l.memory -= c.size
		c.data = nil
	}
}

// Mark returns the current state. A log can be opened at it after a later Flush if the process dies, and after a later
// Sync if the machine does.
func (l *Log) Mark() Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mark()
}

func (l *Log) mark() Mark {
	l.addChecksums()
	return Mark{l.urls, l.end(), l.others.length}
}

// Flush writes all data that is not written yet.
func (l *Log) Flush() error {
	l.io.Lock()
	defer l.io.Unlock()
	_, err := l.flush()
	return err
}

// Sync makes all added data durable, and returns its mark.
func (l *Log) Sync() (Mark, error) {
	l.io.Lock()
	defer l.io.Unlock()
	mark, err := l.flush()
	if err != nil || l.cfg.Dir == "" {
		return mark, err
	}
	if err := errors.Join(l.keyFile.Sync(), l.linkFile.Sync(), l.others.file.Sync()); err != nil {
		return Mark{}, fmt.Errorf("sync link log: %w", err)
	}
	return mark, nil
}

func (l *Log) flush() (Mark, error) {
	l.mu.Lock()
	mark := l.mark()
	var first int
	var parts [][]byte
	var keys, others []byte
	if l.cfg.Dir != "" {
		first = sort.Search(len(l.chunks), func(i int) bool { return l.chunks[i].written < l.chunks[i].size })
		for _, c := range l.chunks[first:] {
			parts = append(parts, c.data[c.written:c.size])
		}
		keys, l.keys = l.keys, nil
		others, l.others.data = l.others.data, nil
	}
	l.mu.Unlock()
	if l.cfg.Dir == "" {
		return mark, nil
	}
	if err := l.write(keys, others, parts); err != nil {
		return Mark{}, fmt.Errorf("write link log: %w", err)
	}
	l.writtenURLs = mark.URLs
	l.mu.Lock()
	defer l.mu.Unlock()
	l.others.written = mark.Others
	for i, part := range parts {
		c := &l.chunks[first+i]
		if c.written += int64(len(part)); first+i < len(l.chunks)-1 {
			l.evict(c)
		}
	}
	return mark, nil
}

// write appends to the files. After an error the log must not be used until it is opened again.
func (l *Log) write(keys, others []byte, parts [][]byte) error {
	if _, err := l.keyFile.Write(keys); err != nil {
		return err
	}
	if _, err := l.others.file.Write(others); err != nil {
		return err
	}
	for _, part := range parts {
		if _, err := l.linkFile.Write(part); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) end() int64 {
	c := &l.chunks[len(l.chunks)-1]
	return c.at + c.size
}

// Keys calls f for the keys of a newly opened log, in the order of their numbers.
func (l *Log) Keys(f func(ids.Key) error) error {
	if l.cfg.Dir == "" {
		return nil
	}
	r, err := l.cfg.Disk.OpenAt(l.name(KeysFile))
	if err != nil {
		return err
	}
	err = eachKey(io.NewSectionReader(r, 0, keyLen*l.writtenURLs), f)
	return errors.Join(err, r.Close())
}

func eachKey(r io.Reader, f func(ids.Key) error) error {
	buf := make([]byte, keyLen<<16)
	for {
		n, err := io.ReadFull(r, buf)
		for b := buf[:n-n%keyLen]; len(b) > 0; b = b[keyLen:] {
			k := ids.Key(b[0]) | ids.Key(b[1])<<8 | ids.Key(b[2])<<16 | ids.Key(b[3])<<24 | ids.Key(b[4])<<32
			if err := f(k); err != nil {
				return err
			}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Remove removes the files of a log that is not open.
func Remove(disk vfs.FS, dir string) error {
	for _, file := range []string{KeysFile, LinksFile, OthersFile} {
		if err := disk.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return disk.SyncDir(dir)
}
