package robots

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"kumo/internal/vfs"
)

// A keeper writes answers down as they came, so that a crawl that goes on does not ask every host again. Its file is a
// line that names the format, then frames: the length of a body and its CRC-32C, four bytes each, little-endian, then
// the body. A file that is full becomes the old one in place of the one before, as the generations in memory do.
// Nothing is synced: what a crash tears off is asked for again.
type keeper struct {
	disk vfs.FS
	dir  string
	max  int64 // bytes of a file

	mu   sync.Mutex // guards what follows
	file vfs.File   // nil: nothing is kept
	size int64
}

const (
	keptMagic = "kumo robots 1\n"
	keptName  = "robots"
	oldSuffix = ".old"
	keptHead  = 8
	maxKept   = 1 << 20 // bytes of a body; more is damage
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Open makes a cache that keeps in Config.Dir what it is told, and has what an earlier one kept there and is still
// good.
func Open(cfg Config) (*Cache, error) {
	c := NewCache(cfg)
	k := &keeper{disk: cfg.Disk, dir: cfg.Dir, max: c.cfg.MaxBytes / 2}
	if err := c.load(k); err != nil {
		return nil, fmt.Errorf("open the rules of robots.txt files in %s: %w", cfg.Dir, err)
	}
	c.keeper = k
	return c, nil
}

// Close closes the file.
func (c *Cache) Close() error {
	if c.keeper == nil || c.keeper.file == nil {
		return nil
	}
	return c.keeper.file.Close()
}

func (c *Cache) load(k *keeper) error {
	if err := k.disk.MkdirAll(k.dir); err != nil {
		return err
	}
	if _, err := c.loadFile(k, keptName+oldSuffix); err != nil {
		return err
	}
	whole, err := c.loadFile(k, keptName)
	if err != nil {
		return err
	}
	name := k.path(keptName)
	if err := vfs.CutBack(k.disk, name, whole); err != nil {
		return err
	}
	if k.file, err = k.disk.Append(name); err != nil {
		return err
	}
	k.size = whole
	if whole == 0 {
		k.write([]byte(keptMagic))
	}
	return nil
}

// loadFile takes in what a file has up to the first frame that is not whole, and returns how many bytes that is.
func (c *Cache) loadFile(k *keeper, name string) (whole int64, err error) {
	src, err := k.disk.Open(k.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = src.Close() }() // it is only read
	in := bufio.NewReaderSize(src, 256<<10)
	magic := make([]byte, len(keptMagic))
	if _, err := io.ReadFull(in, magic); err != nil || string(magic) != keptMagic {
		return 0, nil //nolint:nilerr // another version's: robots.txt is asked for again
	}
	whole = int64(len(magic))
	var head [keptHead]byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return whole, nil //nolint:nilerr // the end, or torn
		}
		n := binary.LittleEndian.Uint32(head[:])
		if n > maxKept {
			return whole, nil
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(in, body); err != nil ||
			crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
			return whole, nil //nolint:nilerr // torn
		}
		c.recall(body)
		whole += int64(len(head)) + int64(n)
	}
}

// recall takes in one answer, if its time has not passed.
func (c *Cache) recall(body []byte) {
	until, n := binary.Varint(body)
	if n <= 0 {
		return
	}
	body = body[n:]
	status, n := binary.Uvarint(body)
	if n <= 0 {
		return
	}
	body = body[n:]
	size, n := binary.Uvarint(body)
	if n <= 0 || size > uint64(len(body)-n) {
		return
	}
	origin, text := string(body[n:][:size]), body[n:][size:]
	end, now := time.Unix(until, 0), c.cfg.Now()
	if !now.Before(end) || end.After(now.Add(c.cfg.TTL)) { // or the clock has been set back
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store(origin, entry{FromStatus(int(status), text, c.cfg.Agent), end})
}

// keep writes an answer down. Where the disk fails nothing is kept any more: it is only asked for again.
func (k *keeper) keep(origin string, status int, text []byte, until time.Time) {
	if k == nil {
		return
	}
	body := make([]byte, keptHead, keptHead+32+len(origin)+len(text))
	body = binary.AppendVarint(body, until.Unix())
	body = binary.AppendUvarint(body, uint64(status))
	body = binary.AppendUvarint(body, uint64(len(origin)))
	body = append(append(body, origin...), text...)
	if len(body) > maxKept {
		return
	}
	binary.LittleEndian.PutUint32(body, uint32(len(body)-keptHead))
	binary.LittleEndian.PutUint32(body[4:], crc32.Checksum(body[keptHead:], castagnoli))
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.size > int64(len(keptMagic)) && k.size+int64(len(body)) > k.max {
		k.roll()
	}
	k.write(body)
}

// roll makes the file the old one and begins the next.
func (k *keeper) roll() {
	if k.file == nil {
		return
	}
	err := k.file.Close()
	k.file, k.size = nil, 0
	if err == nil {
		err = k.disk.Rename(k.path(keptName), k.path(keptName+oldSuffix))
	}
	if err == nil {
		k.file, err = k.disk.Append(k.path(keptName))
	}
	if err == nil {
		k.write([]byte(keptMagic))
	}
}

func (k *keeper) write(b []byte) {
	if k.file == nil {
		return
	}
	if _, err := k.file.Write(b); err != nil {
		_ = k.file.Close() // what follows a torn frame could not be read again
		k.file = nil
		return
	}
	k.size += int64(len(b))
}

func (k *keeper) path(name string) string { return filepath.Join(k.dir, name) }
