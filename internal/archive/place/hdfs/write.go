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

// Create starts a file. The context also applies to Close, which writes the file to HDFS.
func (p *Place) Create(ctx context.Context, name string) (place.Writer, error) {
	full, err := p.path(name)
	if err != nil {
		return nil, err
	}
	return place.NewSpool(p.spool.New(), io.Discard, func(data *vfs.Spool) error {
		return p.explain(ctx, "write", full, p.store(ctx, full, content{data: data, size: data.Len()}))
	}), nil
}

// A content is the content of a file to be written.
type content struct {
	data io.ReaderAt
	size int64
	sum  *[sha256.Size]byte // expected digest, stored with the file; nil: any, and none is stored
}

// store writes a file, with retries until an error is permanent.
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

// attempt writes a file under a temporary name and renames it.
func (p *Place) attempt(ctx context.Context, name string, data content) error {
	f, aside, err := p.createTemp(ctx, name, data.sum != nil)
	if err != nil {
		return err
	}
	if err = fill(ctx, f, data); err == nil {
		err = finish(ctx, f)
	} else {
		_ = f.Close() // stops the lease renewal; there is nothing to finish
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

// createTemp creates a temporary file. Its name is unique, because a response may be lost. If only one process writes
// the file (alone), the name is fixed, and the file replaces that of a killed process.
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

// errSource means that the source failed, not HDFS.
var errSource = errors.New("cannot read the source file")

// fill writes the content.
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

// finish closes a file. It retries if the NameNode has not yet received enough reports about the last block.
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

// discard removes a temporary file, even if the context has ended. If that fails, the hidden file is removed with its
// folder.
func (p *Place) discard(ctx context.Context, aside string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTimeout)
	defer cancel()
	_ = p.remove(ctx, aside) // the error of the write is returned instead
}
