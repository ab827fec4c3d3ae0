package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/colinmarc/hdfs/v2"
	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
)

// Bucket is the folder as a bucket of Go CDK's, for what is written against that. Keys are paths below the folder; what
// HDFS takes for no name is percent-encoded. A file's metadata are an extended attribute. Closing it closes the place.
//
// It knows no MD5 and signs no URLs. IfNotExist holds against others that ask for it, too.
func (p *Place) Bucket() *blob.Bucket { return blob.NewBucket(&bucket{p}) }

type bucket struct{ place *Place }

var _ driver.Bucket = (*bucket)(nil)

var (
	errThere       = errors.New("there is such a file")
	errUnsupported = errors.New("HDFS has no such thing")
)

// ErrorCode says what kind an error is of.
func (*bucket) ErrorCode(err error) gcerrors.ErrorCode {
	for kind, code := range map[error]gcerrors.ErrorCode{fs.ErrNotExist: gcerrors.NotFound,
		errThere:         gcerrors.FailedPrecondition,
		fs.ErrPermission: gcerrors.PermissionDenied, fs.ErrInvalid: gcerrors.InvalidArgument,
		ErrSafeMode:    gcerrors.FailedPrecondition,
		syscall.ENOSPC: gcerrors.ResourceExhausted, errUnsupported: gcerrors.Unimplemented,
		context.Canceled:         gcerrors.Canceled,
		context.DeadlineExceeded: gcerrors.DeadlineExceeded} {
		if errors.Is(err, kind) {
			return code
		}
	}
	return gcerrors.Unknown
}

// As has nothing of the client, which is another one after a failure.
func (*bucket) As(any) bool { return false }

// ErrorAs is errors.As.
func (*bucket) ErrorAs(err error, target any) bool { return errors.As(err, target) }

// Close closes the place.
func (b *bucket) Close() error { return b.place.Close() }

func nothing(any) bool { return false }

// path is where HDFS has a key.
func (b *bucket) path(key string) string { return path.Join(b.place.root, escapeKey(key)) }

// escapeKey makes a path of a key: no element is empty or hidden, or has what HDFS does not take.
func escapeKey(key string) string {
	var s strings.Builder
	for i := range len(key) {
		c := key[i]
		begins := i == 0 || key[i-1] == '/'
		if c < ' ' || c == 0x7f || c == '%' || c == ':' || c == '.' && begins || c == '/' && (begins || i == len(key)-1) {
			fmt.Fprintf(&s, "%%%02X", c)
		} else {
			s.WriteByte(c)
		}
	}
	return s.String()
}

func unescapeKey(name string) string {
	if key, err := url.PathUnescape(name); err == nil {
		return key
	}
	return name // which another program has written
}

// stat is what there is of a file; a folder is none.
func (b *bucket) stat(ctx context.Context, full string) (fs.FileInfo, error) {
	var info fs.FileInfo
	err := b.place.do(ctx, func(client *hdfs.Client) (err error) {
		if info, err = client.Stat(full); err == nil && info.IsDir() {
			err = fs.ErrNotExist
		}
		return err
	})
	return info, b.place.explain(ctx, "stat", full, err)
}

// Attributes returns those of a file.
func (b *bucket) Attributes(ctx context.Context, key string) (*driver.Attributes, error) {
	full := b.path(key)
	info, err := b.stat(ctx, full)
	if err != nil {
		return nil, err
	}
	a, err := b.place.getAttributes(ctx, full)
	if err != nil {
		return nil, b.place.explain(ctx, "look at", full, err)
	}
	return &driver.Attributes{CacheControl: a.CacheControl, ContentDisposition: a.ContentDisposition,
		ContentEncoding: a.ContentEncoding, ContentLanguage: a.ContentLanguage, ContentType: typeOf(a), Metadata: a.Metadata,
		ModTime: info.ModTime(), Size: info.Size(),
		ETag: fmt.Sprintf("\"%x-%x\"", fileID(info), info.ModTime().UnixMilli())}, nil
}

func typeOf(a *attributes) string {
	if a.ContentType == "" {
		return "application/octet-stream"
	}
	return a.ContentType
}

// NewRangeReader opens a file.
func (b *bucket) NewRangeReader(ctx context.Context, key string, offset, length int64, opts *driver.ReaderOptions) (
	driver.Reader, error) {
	full := b.path(key)
	r, err := b.place.open(ctx, full, offset, length)
	if err != nil {
		return nil, err
	}
	a, err := b.place.getAttributes(ctx, full)
	if err == nil && opts.BeforeRead != nil {
		err = opts.BeforeRead(nothing)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return &bucketReader{r, driver.ReaderAttributes{ContentType: typeOf(a), ModTime: r.info.ModTime(),
		Size: r.info.Size()}}, nil
}

type bucketReader struct {
	*reader
	attributes driver.ReaderAttributes
}

func (r *bucketReader) Attributes() *driver.ReaderAttributes { return &r.attributes }
func (*bucketReader) As(any) bool                            { return false }

// NewTypedWriter begins a file.
func (b *bucket) NewTypedWriter(ctx context.Context, key, contentType string,
	opts *driver.WriterOptions) (driver.Writer,
	error) {
	if key == "" {
		return nil, fmt.Errorf("a file without a name: %w", fs.ErrInvalid)
	}
	if opts.BeforeWrite != nil {
		if err := opts.BeforeWrite(nothing); err != nil {
			return nil, err
		}
	}
	a := &attributes{ContentType: contentType, CacheControl: opts.CacheControl,
		ContentDisposition: opts.ContentDisposition,
		ContentEncoding:    opts.ContentEncoding, ContentLanguage: opts.ContentLanguage, Metadata: opts.Metadata}
	full := b.path(key)
	w := &writer{place: b.place, ctx: ctx, name: full, data: b.place.spool.New()}
	return &bucketWriter{w, a, opts.IfNotExist}, nil
}

type bucketWriter struct {
	*writer
	attributes *attributes
	ifNotExist bool
}

func (w *bucketWriter) Close() error {
	if w.data == nil {
		return fs.ErrClosed
	}
	defer w.Abort()
	if err := errors.Join(w.err, w.ctx.Err()); err != nil {
		return err
	}
	return w.place.explain(w.ctx, "write", w.name, w.store())
}

func (w *bucketWriter) store() (err error) {
	if w.ifNotExist {
		unlock, err := w.place.lock(w.ctx, w.name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unlock()) }()
		if _, err := (&bucket{w.place}).stat(w.ctx, w.name); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(errThere, err)
		}
	}
	return w.place.store(w.ctx, w.name, content{data: w.data, size: w.data.Len(), attributes: w.attributes})
}

// Copy copies a file by way of this machine, as HDFS cannot itself.
func (b *bucket) Copy(ctx context.Context, to, from string, opts *driver.CopyOptions) error {
	if opts.BeforeCopy != nil {
		if err := opts.BeforeCopy(nothing); err != nil {
			return err
		}
	}
	r, err := b.place.open(ctx, b.path(from), 0, -1)
	if err != nil {
		return err
	}
	data := b.place.spool.New()
	defer data.Free()
	_, err = io.Copy(data, r)
	if err := errors.Join(err, r.Close()); err != nil {
		return err
	}
	a, err := b.place.getAttributes(ctx, b.path(from))
	if err != nil {
		return err
	}
	full := b.path(to)
	err = b.place.store(ctx, full, content{data: data, size: data.Len(), attributes: a})
	return b.place.explain(ctx, "write", full, err)
}

// Delete removes a file. What it leaves of folders is no part of a listing.
func (b *bucket) Delete(ctx context.Context, key string, opts *driver.DeleteOptions) error {
	full := b.path(key)
	if _, err := b.stat(ctx, full); err != nil {
		return err
	}
	if opts.BeforeDelete != nil {
		if err := opts.BeforeDelete(nothing); err != nil {
			return err
		}
	}
	return b.place.explain(ctx, "remove", full, b.place.remove(ctx, full))
}

// SignedURL is nothing that HDFS has.
func (*bucket) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", fmt.Errorf("a signed URL: %w", errUnsupported)
}

// ListPaged lists files in the order of their keys.
func (b *bucket) ListPaged(ctx context.Context, opts *driver.ListOptions) (*driver.ListPage, error) {
	if opts.BeforeList != nil {
		if err := opts.BeforeList(nothing); err != nil {
			return nil, err
		}
	}
	l := &listing{bucket: b, opts: opts, most: opts.PageSize}
	if l.most == 0 {
		l.most = 1000
	}
	if err := l.begin(string(opts.PageToken)); err != nil {
		return nil, err
	}
	dir, _ := path.Split(opts.Prefix)
	if i := strings.Index("/"+dir, "//"); i >= 0 {
		dir = dir[:i] // from there on, slashes are parts of names
	}
	err := l.walk(ctx, b.path(strings.TrimSuffix(dir, "/")), dir)
	if errors.Is(err, errPageFull) {
		last := l.page.Objects[len(l.page.Objects)-1]
		l.page.NextPageToken = []byte(strconv.FormatBool(last.IsDir) + " " + last.Key)
		err = nil
	}
	return &l.page, err
}

// A listing collects a page.
type listing struct {
	bucket *bucket
	opts   *driver.ListOptions
	most   int
	after  string // the last key of the page before
	under  string // what has this prefix was listed as one
	page   driver.ListPage
}

var errPageFull = errors.New("the page is full")

// begin goes on behind the page before.
func (l *listing) begin(token string) error {
	if token == "" {
		return nil
	}
	isDir, key, _ := strings.Cut(token, " ")
	if isDir != "true" && isDir != "false" {
		return fmt.Errorf("page token %q: %w", token, fs.ErrInvalid)
	}
	l.after = key
	if isDir == "true" {
		l.under = key
	}
	return nil
}

// walk takes in a folder and those below it. Sorted as keys, with a folder's slash, depth first is the order of all
// keys.
func (l *listing) walk(ctx context.Context, full, prefix string) error {
	found, err := l.bucket.place.readDir(ctx, full)
	if err != nil {
		return err
	}
	type entry struct {
		key  string
		info fs.FileInfo
	}
	var all []entry
	for _, info := range found {
		key := prefix + unescapeKey(info.Name())
		if info.IsDir() {
			key += "/"
		}
		all = append(all, entry{key, info})
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	for _, e := range all {
		switch {
		case l.under != "" && strings.HasPrefix(e.key, l.under):
			continue
		case !e.info.IsDir():
			err = l.add(e.key, e.info)
		case e.key < l.after && !strings.HasPrefix(l.after, e.key):
			continue
		case strings.HasPrefix(e.key, l.opts.Prefix) || strings.HasPrefix(l.opts.Prefix, e.key):
			err = l.walk(ctx, path.Join(full, e.info.Name()), e.key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add adds a file, or what stands for it and others by the delimiter.
func (l *listing) add(key string, info fs.FileInfo) error {
	rest, is := strings.CutPrefix(key, l.opts.Prefix)
	if !is || key <= l.after && l.after != "" {
		return nil
	}
	object := &driver.ListObject{Key: key, ModTime: info.ModTime(), Size: info.Size()}
	if d := l.opts.Delimiter; d != "" {
		if i := strings.Index(rest, d); i >= 0 {
			object = &driver.ListObject{Key: l.opts.Prefix + rest[:i+len(d)], IsDir: true}
		}
	}
	if len(l.page.Objects) == l.most {
		return errPageFull
	}
	l.page.Objects = append(l.page.Objects, object)
	if object.IsDir {
		l.under = object.Key
	}
	return nil
}
