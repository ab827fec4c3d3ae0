package bucket

import (
	"context"
	"crypto/sha256"
	"hash"
	"io/fs"

	"kumo/internal/archive/place"
	"kumo/internal/base/vfs"
)

// Create begins a file. The context is that of Close, too, which brings it to the store.
func (p *Place) Create(ctx context.Context, name string) (place.Writer, error) {
	key, err := p.key(name)
	if err != nil {
		return nil, err
	}
	return &writer{place: p, ctx: ctx, name: name, key: key, data: p.spool.New(), digest: sha256.New()}, nil
}

type writer struct {
	place     *Place
	ctx       context.Context
	name, key string
	data      *vfs.Stretch // nil once closed or aborted
	digest    hash.Hash
	err       error // the first of Write
}

func (w *writer) Write(b []byte) (int, error) {
	if w.data == nil {
		return 0, fs.ErrClosed
	}
	n, err := w.data.Write(b)
	w.digest.Write(b[:n])
	if w.err == nil {
		w.err = err
	}
	return n, err
}

func (w *writer) Close() error {
	if w.data == nil {
		return fs.ErrClosed
	}
	defer w.Abort()
	if w.err != nil {
		return w.err
	}
	f := file{w.key, w.data, w.data.Len(), [sha256.Size]byte(w.digest.Sum(nil))}
	return w.place.explain("write", w.name, w.place.store.upload(w.ctx, f, false))
}

func (w *writer) Abort() {
	if w.data != nil {
		w.data.Free()
		w.data = nil
	}
}
