package linklog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"kumo/internal/base/varint"
	"kumo/internal/state/rank"
)

// checksums are those of the files from their beginning.
type checksums struct{ links, keys, others uint32 }

// A record of checksums is a reportedRecord without reports, followed by the checksums of all that precedes it.
const checksumsLen = 1 + 3*4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func extend(sum uint32, more []byte) uint32 { return crc32.Update(sum, castagnoli, more) }

func (s *checksums) appendTo(b []byte) []byte {
	b = append(b, reportedRecord)
	for _, sum := range []uint32{s.links, s.keys, s.others} {
		b = binary.LittleEndian.AppendUint32(b, sum)
	}
	return b
}

// addChecksums adds checksums, unless nothing was added since the last ones. l.mu is held.
func (l *Log) addChecksums() {
	if !l.dirty {
		return
	}
	c := l.last()
	l.extendChunk(c, l.sums.appendTo(c.data))
	l.dirty = false
}

func (d *decoder) skipChecksums() bool {
	const left = checksumsLen - 1
	if len(d.Rest) < left {
		return false
	}
	d.Rest = d.Rest[left:]
	d.checksums++
	return true
}

// check compares the files up to a mark with the checksums before it.
func (l *Log) check(mark Mark) (err error) {
	if mark == (Mark{}) {
		return nil
	}
	end := mark.Links - checksumsLen
	if end < 0 {
		return fmt.Errorf("%w: no checksums", ErrDamaged)
	}
	record := make([]byte, checksumsLen)
	if _, err := l.reader.ReadAt(record, end); err != nil {
		return err
	}
	var failed [3]error
	l.sums.links, failed[0] = l.sumOf(LinksFile, end)
	l.sums.keys, failed[1] = l.sumOf(KeysFile, keyLen*mark.URLs)
	l.sums.others, failed[2] = l.sumOf(OthersFile, mark.Others)
	if err := errors.Join(failed[:]...); err != nil {
		return err
	}
	if string(l.sums.appendTo(nil)) != string(record) {
		return l.cause(mark, record)
	}
	l.sums.links = extend(l.sums.links, record)
	return nil
}

// cause returns the error of a log with wrong checksums.
func (l *Log) cause(mark Mark, record []byte) error {
	has, err := l.hasChecksums(mark)
	switch {
	case err != nil:
		return err
	case has:
		return fmt.Errorf("%w: wrong checksums", ErrDamaged)
	case record[0] != reportedRecord && record[0] != 0: // neither checksums nor zeros, as after a power failure
		return ErrVersion
	}
	return fmt.Errorf("%w: wrong checksums, or a log from an earlier build of kumo, which has none", ErrDamaged)
}

// hasChecksums reports whether there are checksums in the first chunk.
func (l *Log) hasChecksums(mark Mark) (bool, error) {
	b := make([]byte, min(chunkLen, mark.Links))
	if _, err := l.reader.ReadAt(b, 0); err != nil {
		return false, err
	}
	var p rank.Page
	nobody := Reader{Page: func(*rank.Page) {}, Contribution: func(Contribution) {}}
	d := decoder{Reader: varint.Reader{Rest: b}, urls: uint64(mark.URLs)}
	for d.checksums == 0 && len(d.Rest) > 0 && d.record(&nobody, &p) {
	}
	return d.checksums > 0, nil
}

// sumOf returns the checksum of a file's first bytes.
func (l *Log) sumOf(file string, length int64) (sum uint32, err error) {
	r, err := l.cfg.Disk.OpenAt(l.name(file))
	if err != nil {
		return 0, err
	}
	h := crc32.New(castagnoli)
	_, err = io.CopyBuffer(struct{ io.Writer }{h}, io.NewSectionReader(r, 0, length), make([]byte, chunkLen))
	return h.Sum32(), errors.Join(err, r.Close())
}
