package frontier

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"kumo/internal/base/vfs"
)

const (
	checkpointMagic = "kumo frontier 4\n"
	checkpointName  = "checkpoint"
	checkpointTemp  = "checkpoint.new"
)

// The sections of a checkpoint: a byte, the length of the body and the CRC-32C of body and byte, four bytes each,
// little-endian, then the body.
const (
	sectionBegin   = 'B' // the process's number, and the Unix time of tick 0 in ms
	sectionRecords = 'R' // the first one's number, four bytes; records of cold hosts, and others marked as hot
	// a record of a host that was in memory; its name, links, items in memory, items of visits under way
	sectionHost       = 'H'
	sectionBucket     = 'C' // a bucket's number, class and time; its chunks
	sectionSuppressed = 'G' // hashes of suppressed URLs, 16 bytes each
	sectionEnd        = 'E' // the last item's age, the segments, the greatest lift of any item, the caller's note
)

// A checkpointFile collects the sections of a checkpoint in memory, and writes them.
type checkpointFile struct {
	folder folder
	mu     *sync.Mutex // the frontier's; guards buf and err
	buf    []byte      // not in the file yet
	err    error

	// The holder of the disk alone uses these.
	file  vfs.File
	spare []byte
}

func sectionSum(kind byte, body []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, body)
}

// section adds a section.
func (c *checkpointFile) section(kind byte, body []byte) {
	if len(body) > maxSection && c.err == nil {
		c.err = fmt.Errorf("a section of %d bytes is too large to be read again", len(body))
	}
	c.buf = append(c.buf, kind)
	c.buf = binary.LittleEndian.AppendUint32(c.buf, uint32(len(body)))
	c.buf = binary.LittleEndian.AppendUint32(c.buf, sectionSum(kind, body))
	c.buf = append(c.buf, body...)
}

// drain writes what was collected. Its error is in err.
func (c *checkpointFile) drain() {
	c.mu.Lock()
	buf, err := c.buf, c.err
	c.buf = c.spare[:0]
	c.mu.Unlock()
	if err == nil && c.file == nil {
		err = c.open()
	}
	if err == nil {
		_, err = c.file.Write(buf)
	}
	c.spare = buf
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = cmp.Or(c.err, err)
}

func (c *checkpointFile) open() (err error) {
	name := c.folder.path(checkpointTemp)
	if err = vfs.TruncateTo(c.folder.disk, name, 0); err == nil {
		c.file, err = c.folder.disk.Append(name)
	}
	return err
}

// close makes the file durable.
func (c *checkpointFile) close() error { return errors.Join(c.file.Sync(), c.file.Close()) }

// abandon closes a file that is of no use.
func (c *checkpointFile) abandon() {
	if c.file != nil {
		_ = c.file.Close()
	}
}

// publish replaces the last checkpoint.
func (c *checkpointFile) publish() error {
	return c.folder.disk.Rename(c.folder.path(checkpointTemp), c.folder.path(checkpointName))
}
