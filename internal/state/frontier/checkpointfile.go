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

// The sections of a checkpoint: a kind byte, the length of the body and the CRC-32C of body and kind (4 bytes each,
// little-endian), then the body.
const (
	sectionBegin   = 'B' // the process's number, and the Unix time of tick 0 in ms
	sectionRecords = 'R' // the first record's number (4 bytes); records of cold hosts; the others are marked as hot
	// a record of a host that was in memory; its name, links, items in memory, items of visits under way
	sectionHost       = 'H'
	sectionBucket     = 'C' // a bucket's number, class and time; its chunks
	sectionSuppressed = 'G' // hashes of suppressed URLs, 16 bytes each
	sectionEnd        = 'E' // the last item's age, the segments, the greatest lift of any item, the caller's note
)

// A checkpointFile collects the sections of a checkpoint in memory, and writes them.
type checkpointFile struct {
	folder folder
	mu     *sync.Mutex // the frontier's lock; guards buf and err
	buf    []byte      // not written to the file yet
	err    error

	// Only the holder of the disk lock uses these.
	file  vfs.File
	spare []byte
}

func sectionSum(kind byte, body []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, body)
}

// section adds a section.
func (c *checkpointFile) section(kind byte, body []byte) {
	if len(body) > maxSection && c.err == nil {
		c.err = fmt.Errorf("section of %d bytes exceeds the limit of the checkpoint format", len(body))
	}
	c.buf = append(c.buf, kind)
	c.buf = binary.LittleEndian.AppendUint32(c.buf, uint32(len(body)))
	c.buf = binary.LittleEndian.AppendUint32(c.buf, sectionSum(kind, body))
	c.buf = append(c.buf, body...)
}

// drain writes the collected sections. It records an error in err.
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

// close syncs and closes the file.
func (c *checkpointFile) close() error { return errors.Join(c.file.Sync(), c.file.Close()) }

// abandon closes a file that will not be published.
func (c *checkpointFile) abandon() {
	if c.file != nil {
		_ = c.file.Close()
	}
}

// publish replaces the last checkpoint.
func (c *checkpointFile) publish() error {
	return c.folder.disk.Rename(c.folder.path(checkpointTemp), c.folder.path(checkpointName))
}
