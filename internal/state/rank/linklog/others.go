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

// othersFile is the file of other nodes' URLs. For each it has the number, the depth, and the suffix in which it
// differs from the previous one.
type othersFile struct {
	file            vfs.File
	data            []byte // not yet written
	length, written int64  // of the whole file, and of its part on disk
	last            string
}

// AddOther adds a URL of another node that is not in the file yet. It never waits for the disk. A log without a
// directory ignores it.
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
	l.sums.others, l.dirty = extend(l.sums.others, w[len(o.data):]), true
	o.length += int64(len(w) - len(o.data))
	o.data, o.last = w, url
}

// Others calls f for each URL of other nodes that is on disk, in the order of addition. url is valid until f returns.
// Others stops at an error of f or ctx. The log must not be closed during the call.
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

// maxURL is a bound for the length of a URL.
const maxURL = 1 << 20

func eachOther(ctx context.Context, r *bufio.Reader, urls uint64, f func(rank.ID, []byte, int32) error) error {
	var url []byte
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		var head [4]uint64 // number, depth, bytes shared with the previous URL, bytes that follow
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
