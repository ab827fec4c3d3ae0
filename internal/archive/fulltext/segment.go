package fulltext

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"time"

	"github.com/klauspost/compress/zstd"

	"kumo/internal/base/varint"
	"kumo/internal/base/vfs"
)

// The file of a segment has, in this order: blocks of documents; for each dictionary block, its postings and the block;
// tables of both kinds of blocks; a record per document; hashes of URLs, sorted; the footer, with its length and
// checksum.
type footer struct {
	Docs    table `json:"docs"`    // blocks: offset 8, length 4, first document 4, checksum 4
	Dict    table `json:"dict"`    // blocks: offset 8, length 4, checksum 4
	Columns table `json:"columns"` // documents: time 4, length 1
	Hashes  table `json:"hashes"`  // hash 16, document 4
}

const (
	docsRecord, dictRecord, columnRecord, hashRecord = 20, 16, 5, hashBytes + 4
	docsBlock                                        = 32 << 10 // bytes of documents that are compressed together
	dictBlock                                        = 4 << 10
	inlined                                          = 32 // bytes of postings stored in the dictionary itself
	heldPositions                                    = 64 << 10
)

// A segmentWriter writes a segment: first all documents, then all terms in order.
type segmentWriter struct {
	*fileWriter
	info segmentInfo
	foot footer

	block           varint.Writer // documents
	first           int           // first document of block
	docs            []byte        // tables
	dicts, col, hsh []byte

	dict       varint.Writer
	last       string // last term of the block
	term       string
	word       wordWriter
	posAt      int64
	posWritten int
	posSum     uint32
}

func newSegmentWriter(disk vfs.FS, dir, name string) (*segmentWriter, error) {
	f, err := create(disk, filepath.Join(dir, name))
	return &segmentWriter{fileWriter: f, info: segmentInfo{Name: name}}, err
}

var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(64<<20), zstd.WithDecoderConcurrency(2))
)

// addDoc adds an encoded document, with its number of words as a lengthByte and the time of its visit.
func (w *segmentWriter) addDoc(doc []byte, hash [hashBytes]byte, at uint32, length byte, tokens int) error {
	w.col = append(binary.LittleEndian.AppendUint32(w.col, at), length)
	w.hsh = append(w.hsh, hash[:]...)
	w.hsh = binary.LittleEndian.AppendUint32(w.hsh, uint32(w.info.Docs)) //nolint:gosec // maxSegmentDocs
	w.info.Tokens += int64(tokens)
	w.block.Bytes(doc)
	w.info.Docs++
	if len(w.block) < docsBlock {
		return nil
	}
	return w.endBlock()
}

func (w *segmentWriter) endBlock() error {
	if len(w.block) == 0 {
		return nil
	}
	packed := packer.EncodeAll(w.block, nil)
	w.docs = binary.LittleEndian.AppendUint64(w.docs, uint64(w.at))        //nolint:gosec // a place
	w.docs = binary.LittleEndian.AppendUint32(w.docs, uint32(len(packed))) //nolint:gosec // a block
	w.docs = binary.LittleEndian.AppendUint32(w.docs, uint32(w.first))     //nolint:gosec // maxSegmentDocs
	w.docs = binary.LittleEndian.AppendUint32(w.docs, sum(packed))
	w.block, w.first = w.block[:0], w.info.Docs
	return w.write(packed)
}

// begin starts a term.
func (w *segmentWriter) begin(term string) {
	w.term, w.posWritten, w.posSum = term, 0, 0
	w.word = wordWriter{list: w.word.list[:0], pos: w.word.pos[:0], last: -1}
}

// add adds a document with the current term, and its positions.
func (w *segmentWriter) add(doc int, head bool, positions []uint32) error {
	w.word.add(doc, head, positions)
	if len(w.word.pos) > heldPositions {
		return w.flushPositions()
	}
	return nil
}

// A wordWriter encodes the postings of a term.
type wordWriter struct {
	list varint.Writer // documents
	pos  varint.Writer // positions that are not written yet
	df   int           // documents
	last int           // document; -1 before the first
}

// add adds a document.
func (w *wordWriter) add(doc int, head bool, positions []uint32) {
	w.list.Uint(entryOf(doc-w.last, len(positions), head))
	if len(positions) != 1 {
		w.list.Uint(uint64(len(positions)))
	}
	last := uint32(0)
	for _, p := range positions {
		w.pos.Uint(uint64(p - last))
		last = p
	}
	w.df++
	w.last = doc
}

func entryOf(delta, tf int, head bool) uint64 {
	e := uint64(delta) << 2 //nolint:gosec // it counts
	if head {
		e |= 2
	}
	if tf == 1 {
		e |= 1
	}
	return e
}

func (w *segmentWriter) flushPositions() error {
	if w.posWritten == 0 {
		w.posAt = w.at
	}
	w.posWritten += len(w.word.pos)
	w.posSum = crcMore(w.posSum, w.word.pos)
	err := w.write(w.word.pos)
	w.word.pos = w.word.pos[:0]
	return err
}

// end completes the current term.
func (w *segmentWriter) end() error {
	if len(w.term) > maxTerm {
		return fmt.Errorf("term of %d bytes is too long for the index: %.40q", len(w.term), w.term)
	}
	w.dict.Suffix(w.term, w.last)
	w.last = w.term
	w.dict.Uint(uint64(w.word.df)) //nolint:gosec // it counts
	w.dict.Uint(uint64(len(w.word.list)))
	w.dict.Uint(uint64(w.posWritten + len(w.word.pos))) //nolint:gosec // it counts
	if w.posWritten+len(w.word.pos)+len(w.word.list) <= inlined {
		w.dict = append(append(w.dict, w.word.list...), w.word.pos...)
	} else {
		if err := w.flushPositions(); err != nil {
			return err
		}
		w.dict.Uint(uint64(w.posAt)) //nolint:gosec // a place
		w.dict = binary.LittleEndian.AppendUint32(w.dict, sum(w.word.list))
		w.dict = binary.LittleEndian.AppendUint32(w.dict, w.posSum)
		if err := w.write(w.word.list); err != nil {
			return err
		}
	}
	if len(w.dict) < dictBlock {
		return nil
	}
	return w.endDict()
}

func (w *segmentWriter) endDict() error {
	if len(w.dict) == 0 {
		return nil
	}
	w.dicts = binary.LittleEndian.AppendUint64(w.dicts, uint64(w.at))        //nolint:gosec // a place
	w.dicts = binary.LittleEndian.AppendUint32(w.dicts, uint32(len(w.dict))) //nolint:gosec // a block
	w.dicts = binary.LittleEndian.AppendUint32(w.dicts, sum(w.dict))
	err := w.write(w.dict)
	w.dict, w.last = w.dict[:0], ""
	return err
}

// close completes the segment, and makes it durable.
func (w *segmentWriter) close() (segmentInfo, error) {
	err := w.endDict()
	for _, t := range []struct {
		to      *table
		records []byte
		size    int
	}{{&w.foot.Docs, w.docs, docsRecord}, {&w.foot.Dict, w.dicts, dictRecord}, {&w.foot.Columns, w.col, columnRecord},
		{&w.foot.Hashes, sortedHashes(w.hsh), hashRecord}} {
		if err == nil {
			*t.to, err = w.writeTable(t.records, t.size)
		}
	}
	var data []byte
	if err == nil {
		data, err = json.Marshal(w.foot)
	}
	if err == nil {
		check := sum(data)
		data = binary.LittleEndian.AppendUint32(data, uint32(len(data))) //nolint:gosec // a few
		err = w.write(binary.LittleEndian.AppendUint32(data, check))
	}
	if err != nil {
		w.drop()
		return w.info, err
	}
	w.info.Bytes = w.at
	return w.info, w.finish()
}

func sortedHashes(all []byte) []byte {
	n := len(all) / hashRecord
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	at := func(i int) []byte { return all[i*hashRecord : (i+1)*hashRecord] }
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(at(a), at(b)) })
	sorted := make([]byte, 0, len(all))
	for _, i := range order {
		sorted = append(sorted, at(i)...)
	}
	return sorted
}

// A segment is a segment that is open for reading. It is not safe for concurrent use.
type segment struct {
	info    *segmentInfo
	file    vfs.ReaderAt
	docs    *tableReader
	dict    *tableReader
	columns *tableReader
	hashes  *tableReader
	deleted docSet
}

func openSegment(disk vfs.FS, dir string, info *segmentInfo) (*segment, error) {
	name := filepath.Join(dir, info.Name)
	f, err := disk.OpenAt(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &missingFile{name}
	}
	if err != nil {
		return nil, err
	}
	s := &segment{info: info, file: f}
	size, err := disk.Size(name)
	if err == nil && (info.Bytes > size || info.Docs > int(size)/docsRecord) { // these sizes determine allocations
		err = damagedf("%s: size is %d bytes, manifest has %d bytes and %d documents", info.Name, size, info.Bytes,
			info.Docs)
	}
	if err == nil {
		s.deleted, err = newSet(info.Docs), s.open()
	}
	if err == nil && info.Deleted != "" {
		s.deleted, err = readSet(disk, filepath.Join(dir, info.Deleted), info.Docs)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *segment) open() error {
	end := make([]byte, 8)
	if err := readAt(s.file, end, s.info.Bytes-8); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(end))
	if n > 4096 || n > s.info.Bytes-8 {
		return damagedf("%s: invalid footer", s.info.Name)
	}
	data := make([]byte, n)
	if err := readAt(s.file, data, s.info.Bytes-8-n); err != nil {
		return err
	}
	foot := footer{}
	if sum(data) != binary.LittleEndian.Uint32(end[4:]) || json.Unmarshal(data, &foot) != nil ||
		foot.Columns.N != s.info.Docs || foot.Hashes.N != s.info.Docs {
		return damagedf("%s: invalid footer", s.info.Name)
	}
	s.docs, s.dict = foot.Docs.reader(s.file, docsRecord), foot.Dict.reader(s.file, dictRecord)
	s.columns, s.hashes = foot.Columns.reader(s.file, columnRecord), foot.Hashes.reader(s.file, hashRecord)
	return nil
}

func (s *segment) close() { _ = s.file.Close() } // opened for reading only

// find returns the document of a URL and the time of its visit; -1 if there is none. Hashes are evenly distributed, so
// it uses interpolation search.
func (s *segment) find(hash [hashBytes]byte) (doc int, at uint32, err error) {
	guess := int(float64(binary.BigEndian.Uint64(hash[:])) / math.MaxUint64 * float64(s.info.Docs-1))
	lo, hi := 0, s.info.Docs // lo <= position < hi
	for near := 32; ; near *= 4 {
		below, err := s.compare(max(guess-near, 0), hash)
		if err != nil {
			return 0, 0, err
		}
		above, err := s.compare(min(guess+near, s.info.Docs-1), hash)
		if err != nil {
			return 0, 0, err
		}
		if below <= 0 {
			lo = max(guess-near, 0)
		}
		if above >= 0 {
			hi = min(guess+near, s.info.Docs-1) + 1
		}
		if (below <= 0 || guess <= near) && (above >= 0 || guess+near >= s.info.Docs-1) {
			break
		}
	}
	for lo < hi {
		mid := lo + (hi-lo)/2
		c, err := s.compare(mid, hash)
		switch {
		case err != nil:
			return 0, 0, err
		case c == 0:
			rec, err := s.hashes.get(mid)
			if err != nil {
				return 0, 0, err
			}
			if doc = int(binary.LittleEndian.Uint32(rec[hashBytes:])); doc >= s.info.Docs {
				return 0, 0, damagedf("%s: the document of a URL does not exist", s.info.Name)
			}
			at, _, err = s.column(doc)
			return doc, at, err
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return -1, 0, nil
}

// compare compares the i-th hash with another.
func (s *segment) compare(i int, hash [hashBytes]byte) (int, error) {
	rec, err := s.hashes.get(i)
	if err != nil {
		return 0, err
	}
	return bytes.Compare(rec[:hashBytes], hash[:]), nil
}

// column returns the time of a document's visit, and its number of words.
func (s *segment) column(doc int) (at uint32, length byte, err error) {
	rec, err := s.columns.get(doc)
	if err != nil {
		return 0, 0, err
	}
	return binary.LittleEndian.Uint32(rec), rec[4], nil
}

func (s *segment) readBlock(rec []byte, check []byte) ([]byte, error) {
	at, n := int64(
		binary.LittleEndian.Uint64(rec),
	), int(
		binary.LittleEndian.Uint32(rec[8:]),
	) //nolint:gosec // checked below
	if at < 0 || int64(n) > s.info.Bytes || at > s.info.Bytes-int64(n) {
		return nil, damagedf("%s: a block does not exist", s.info.Name)
	}
	b := make([]byte, n)
	if err := readAt(s.file, b, at); err != nil {
		return nil, err
	}
	if sum(b) != binary.LittleEndian.Uint32(check) {
		return nil, damagedf("%s: wrong checksum of a block", s.info.Name)
	}
	return b, nil
}

// docBlock returns the documents of a block, and the number of the first.
func (s *segment) docBlock(i int) (r varint.Reader, first int, err error) {
	rec, err := s.docs.get(i)
	if err != nil {
		return r, 0, err
	}
	packed, err := s.readBlock(rec, rec[16:])
	if err != nil {
		return r, 0, err
	}
	first = int(binary.LittleEndian.Uint32(rec[12:]))
	if r.Rest, err = unpacker.DecodeAll(packed, nil); err != nil {
		return r, 0, damagedf("%s: %v", s.info.Name, err)
	}
	return r, first, nil
}

// doc reads a document.
func (s *segment) doc(n int) (d Doc, err error) {
	var failed error
	i := sort.Search(s.docs.t.N, func(i int) bool {
		rec, err := s.docs.get(i)
		if err != nil {
			failed = err
			return true
		}
		return int(binary.LittleEndian.Uint32(rec[12:])) > n
	}) - 1
	if failed != nil {
		return d, failed
	}
	r, first, err := s.docBlock(i)
	if err != nil {
		return d, err
	}
	for range n - first {
		r.Bytes()
	}
	data := r.Bytes()
	if r.Bad {
		return d, damagedf("%s: a document does not exist", s.info.Name)
	}
	return readDoc(data)
}

func appendDoc(w varint.Writer, d *Doc) varint.Writer {
	w.String(d.URL)
	w.Int(d.Line)
	w.Int(int64(d.Status))
	w.Int(d.Time.Unix())
	for _, s := range []string{d.Lang, d.Type, d.Title, d.About, d.Text} {
		w.String(s)
	}
	return w
}

func readDoc(data []byte) (d Doc, err error) {
	r := varint.Reader{Rest: data}
	d.URL, d.Line, d.Status, d.Time = r.String(), r.Int(), int(r.Int()), time.Unix(r.Int(), 0).UTC()
	for _, s := range []*string{&d.Lang, &d.Type, &d.Title, &d.About, &d.Text} {
		*s = r.String()
	}
	if !r.Complete() {
		return d, damagedf("cannot read a document")
	}
	return d, nil
}
