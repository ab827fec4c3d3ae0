// Package warc writes a crawl's records as WARC 1.1 (ISO 28500:2017) with a sorted CDXJ index.
//
// # Records
//
// A visit becomes consecutive records: response (or revisit), request, metadata and, for a rendered page, conversion (the
// document after its scripts) and resources (its pictures). Each is a separate member of the compressed file, so a reader can start at
// any of them.
//
// The goroutine that calls Put builds and compresses the records, in reused buffers. Only appending the finished bytes
// is serialized. Most bodies are already compressed, and most other records are small. For both, building Huffman codes
// would cost much and save little, so only long texts get codes of their own.
//
// The stored response is the exact bytes received, including chunks and odd line ends. A response with a broken head
// cannot be parsed as HTTP. It is stored as a resource record of type application/octet-stream, which no reader tries
// to parse, and is omitted from the index.
//
// # Digests and revisits
//
// WARC-Payload-Digest covers the body as stored in the record, with its chunks. warcio, FastWARC and JWAT check it that
// way, and pywb computes it so, although the standard means the body without chunks. A revisit and the index repeat the
// digest of the record that has the body, since replay finds it by that.
//
// A revisit because the page is unchanged (304) has no block. Otherwise pywb would show the block's head, and an empty
// page. The head is in the visit's metadata record. The index has the status of the page that represents it.
// docs/decisions/replay.md describes the experiments.
//
// # Files
//
// A file grows under the name X.warc.gz.open. Its index X.cdxj.open is in the order of arrival. When the file is full
// and the Mark that contains its end is durable, the index is sorted into X.cdxj and both names lose ".open".
package warc

import (
	"path/filepath"
	"sync"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

// Config configures a Store.
type Config struct {
	Dir         string           // the crawl's folder; files are written to its subfolder warc
	Name        string           // the crawl's name, first part of the file names
	Hostname    string           // this machine's name, last part of the file names
	MaxSize     int64            // maximum file size in bytes, unless a single visit is larger; default 1 GB
	Compression string           // "gzip" (default), "zstd" or "none"
	Scratch     *vfs.Scratch     // for building long records; default a temporary file
	Software    string           // for warcinfo: name and version of the program
	Info        [][2]string      // additional fields of warcinfo, without secrets
	Now         func() time.Time // default time.Now
	Closed      func()           // called when a file got its final name; may be nil
}

func (c *Config) setDefaults() {
	if c.MaxSize <= 0 {
		c.MaxSize = 1e9
	}
	if c.Compression == "" {
		c.Compression = "gzip"
	}
	if c.Now == nil {
		c.Now = time.Now
	}
}

var _ store.Store = (*Store)(nil)

// A Store writes WARC files.
type Store struct {
	disk   vfs.FS
	cfg    Config
	drafts *drafts

	mu     sync.Mutex // guards the next three fields
	serial int        // of the next file
	cur    *file      // the growing file; nil before its first record
	full   []*file    // files that are full and wait for Finalize

	marked     []*file // files in the last Mark
	toFinalize []*file // those that were full at the last Mark
}

// Open opens a store. Open files of an earlier store are truncated to marks and finalized. New records are written to
// new files.
func Open(disk vfs.FS, cfg Config, marks []store.Mark) (*Store, error) {
	cfg.setDefaults()
	if cfg.Scratch == nil {
		cfg.Scratch = vfs.NewScratch("", nil, 0)
	}
	drafts, err := newDrafts(cfg.Compression, cfg.Scratch)
	if err != nil {
		return nil, err
	}
	s := &Store{disk: disk, cfg: cfg, drafts: drafts}
	if err := disk.MkdirAll(s.dir()); err != nil {
		return nil, err
	}
	if err := s.recover(marks); err != nil {
		return nil, err
	}
	s.serial, err = nextSerial(disk, s.dir())
	return s, err
}

func (s *Store) dir() string { return filepath.Join(s.cfg.Dir, "warc") }

// Put writes the records of a visit and sets rec.Location. A visit without a response, or of a page that must not be
// archived, is ignored.
func (s *Store) Put(rec *page.Record) error {
	if rec.Response == nil || rec.Response.RawLen() == 0 || rec.NoArchive {
		return nil
	}
	d := s.drafts.get()
	defer s.drafts.put(d)
	id, length := d.visit(rec)
	if d.spool != nil {
		d.flush()
	}
	if d.err != nil {
		return d.err
	}
	name, offset, err := s.append(d)
	if err != nil {
		return err
	}
	rec.Location = page.Location{File: name, Offset: offset, Length: length, ID: id}
	if rec.Revisit == nil && d.payload != rec.Digest {
		rec.Location.Chunked = d.payload
	}
	return nil
}

// PutSkip does nothing: WARC files contain only fetched data.
func (s *Store) PutSkip(*page.Skip) error { return nil }

// append appends a visit's records to the current file, with an index line if there is one.
func (s *Store) append(d *draft) (name string, offset int64, err error) {
	size := int64(len(d.out))
	if d.spool != nil {
		size = d.spool.Len()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur != nil && s.cur.records.Len()+size > s.cfg.MaxSize {
		s.full = append(s.full, s.cur)
		s.cur = nil
	}
	if s.cur == nil {
		if s.cur, err = s.newFile(); err != nil {
			return "", 0, err
		}
	}
	if d.spool != nil {
		offset, err = s.cur.appendSpooled(d.spool, d.line, d.copyBuf)
	} else {
		offset, err = s.cur.append(d.out, d.line)
	}
	return s.cur.name, offset, err
}
