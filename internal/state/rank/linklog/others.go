package linklog

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"kumo/internal/base/varint"
	"kumo/internal/base/vfs"
	"kumo/internal/state/rank"
)

// othersFile is the file with URLs of other nodes. Of each it has the number, the depth, and what it does not have in
// common with the one before.
type othersFile struct {
	file            vfs.File
	data            []byte // that is not written yet
	length, written int64  // of all, and of what is on the disk
	last            string
}

// AddOther adds one of other nodes' URLs, which is new to the log's file of them. It never waits for the disk. A log
// without a folder keeps none.
func (l *Log) AddOther(u rank.ID, url string, depth int32) {
	if l.cfg.Dir == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &l.others
	w := varint.Writer(o.data)
	w.Uint(uint64(u))
	w.Uint(uint64(max(0, depth)))
	w.Suffix(url, o.last)
	o.length += int64(len(w) - len(o.data))
	o.data, o.last = w, url
}

// Others calls f for each of other nodes' URLs that are on the disk, in the order in which they were added. The bytes
// hold until f returns. It ends early with an error of f or of the context. The log is not closed meanwhile.
func (l *Log) Others(ctx context.Context, f func(u rank.ID, url []byte, depth int32) error) error {
	l.mu.Lock()
	length, urls := l.others.written, l.urls
	l.mu.Unlock()
	if l.cfg.Dir == "" || length == 0 {
		return nil
	}
	file, err := l.cfg.Disk.OpenAt(l.name(OthersFile))
	if err != nil {
		return err
	}
	r := bufio.NewReaderSize(io.NewSectionReader(file, 0, length), chunkLen)
	return errors.Join(eachOther(ctx, r, uint64(urls), f), file.Close())
}

// maxURL is more than a URL is long.
const maxURL = 1 << 20

func eachOther(ctx context.Context, r *bufio.Reader, urls uint64, f func(rank.ID, []byte, int32) error) error {
	var url []byte
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		var head [4]uint64 // number, depth, bytes in common, bytes that follow
		for i := range head {
			x, err := binary.ReadUvarint(r)
			if errors.Is(err, io.EOF) && i == 0 {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%w: URLs of other nodes: %w", ErrDamaged, err)
			}
			head[i] = x
		}
		if head[0] >= urls || head[1] > 1<<31-1 || head[2] > uint64(len(url)) || head[3] > maxURL {
			return fmt.Errorf("%w: URLs of other nodes", ErrDamaged)
		}
		same := int(head[2])
		for cap(url) < same+int(head[3]) {
			url = append(url[:cap(url)], 0)
		}
		url = url[:same+int(head[3])]
		if _, err := io.ReadFull(r, url[same:]); err != nil {
			return fmt.Errorf("%w: URLs of other nodes: %w", ErrDamaged, err)
		}
		if err := f(rank.ID(head[0]), url, int32(head[1])); err != nil {
			return err
		}
	}
}
