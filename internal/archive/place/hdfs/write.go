package hdfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"kumo/internal/archive/place"
	"kumo/internal/base/vfs"
)

// Create begins a file. The context is that of Close, too, which writes it to HDFS.
func (p *Place) Create(ctx context.Context, name string) (place.Writer, error) {
	full, err := p.path(name)
	if err != nil {
		return nil, err
	}
	return place.NewSpool(p.spool.New(), io.Discard, func(data *vfs.Spool) error {
		return p.explain(ctx, "write", full, p.store(ctx, full, content{data: data, size: data.Len()}))
	}), nil
}

// A content is what becomes a file.
type content struct {
	data io.ReaderAt
	size int64
	sum  *[sha256.Size]byte // that it must have, and that is kept with it; nil: whatever it has
}

// store writes a file until it is there, or until that is hopeless.
func (p *Place) store(ctx context.Context, name string, data content) error {
	begin := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := p.attempt(ctx, name, data)
		if err == nil || ctx.Err() != nil || p.isPermanent(ctx, err) {
			return err
		}
		if time.Since(begin)+pause > p.patience {
			return fmt.Errorf("given up after %v: %w", p.patience, err)
		}
		if err := place.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// attempt writes a file aside and gives it its name.
func (p *Place) attempt(ctx context.Context, name string, data content) error {
	f, aside, err := p.createTemp(ctx, name, data.sum != nil)
	if err != nil {
		return err
	}
	if err = fill(ctx, f, data); err == nil {
		err = finish(ctx, f)
	} else {
		_ = f.Close() // its beats would go on; there is nothing to finish
	}
	if err == nil && data.sum != nil {
		err = p.setDigest(ctx, aside, hex.EncodeToString(data.sum[:]))
	}
	if err == nil {
		err = p.rename(ctx, aside, name)
	}
	if err != nil {
		p.discard(ctx, aside)
	}
	return err
}

// createTemp makes the file aside. It has another name each time, as an answer may be lost; but where one process alone
// brings a file there, the same, in place of what one has left that was killed.
func (p *Place) createTemp(ctx context.Context, name string, alone bool) (f *hdfs.FileWriter, aside string, err error) {
	dir, base := path.Split(name)
	err = p.do(ctx, func(client *hdfs.Client) error {
		if err := client.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		defaults, err := client.ServerDefaults()
		if err != nil {
			return err
		}
		if aside = fmt.Sprintf("%s.%s.%08x.open", dir, base, rand.Uint64()); alone {
			aside = fmt.Sprintf("%s.%s.upload.open", dir, base)
			if err := client.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		f, err = client.CreateFile(aside, defaults.Replication, defaults.BlockSize, 0o644)
		return err
	})
	return f, aside, err
}

// errSource says that it is not HDFS which fails.
var errSource = errors.New("what is to be written cannot be read")

// fill writes what there is.
func fill(ctx context.Context, f *hdfs.FileWriter, c content) error {
	in := io.NewSectionReader(c.data, 0, c.size)
	buf, digest := make([]byte, min(1<<20, max(c.size, 1))), sha256.New()
	for at := int64(0); at < c.size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := in.Read(buf)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("%w: %w", errSource, err)
		}
		if c.sum != nil {
			digest.Write(buf[:n])
		}
		if _, err := f.Write(buf[:n]); err != nil {
			return err
		}
		at += int64(n)
	}
	if c.sum != nil {
		return place.CheckDigest(digest, *c.sum)
	}
	return nil
}

// finish closes a file, again where the NameNode has not yet heard of the last block from enough DataNodes.
func finish(ctx context.Context, f *hdfs.FileWriter) error {
	begin := time.Now()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := f.Close()
		if err == nil || !hdfs.IsErrReplicating(err) || time.Since(begin) > idleTimeout {
			return err
		}
		if err := place.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// discard removes a file aside, also when the caller has been told to stop. What is left of it is hidden, and goes with
// its folder.
func (p *Place) discard(ctx context.Context, aside string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTimeout)
	defer cancel()
	_ = p.remove(ctx, aside) // the error of the write is what counts
}
