// Package bucket stores files in a bucket of an object store, or below a prefix of one. It supports S3 and compatible
// stores (s3://) and Google Cloud Storage (gs://).
//
// Object stores have neither folders nor renames. A folder is a common prefix of keys. A rename is a server-side copy
// followed by a removal; a crash in between leaves the file under both names.
//
// S3 is accessed with AWS's client. Google Cloud Storage is accessed with its JSON API over net/http, because Google's
// client would double the number of kumo's dependencies.
//
// A file is buffered in a local temporary file until it is closed, and then uploaded. The upload is one request, or a
// multipart upload that becomes the file when the last part has arrived.
package bucket

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/base/advice"
	"kumo/internal/base/vfs"
)

const firstPause = 200 * time.Millisecond

// A Config has the settings that are not part of the URL.
type Config struct {
	Spool string // folder for files until they are closed; "": the system's
}

// A store is a bucket with the protocol of its server. Keys are complete; errors are those of the protocol (see
// isNotFound).
type store interface {
	// head returns the object with a key.
	head(ctx context.Context, key string) (object, error)
	// get reads at most length bytes from offset, or all bytes from there if length is negative. If version is not "" and
	// the object has another version, get fails.
	get(ctx context.Context, key string, offset, length int64, version string) (*content, error)
	// list returns a page of at most limit objects, and the token of the next page, "" after the last. With a delimiter,
	// keys that have it behind the prefix are listed as one folder.
	list(ctx context.Context, prefix, delimiter, token string, limit int) (page []object, next string, err error)
	copy(ctx context.Context, to, from string) error
	// removeAll removes objects, at most listPage; it is no error if there are none.
	removeAll(ctx context.Context, keys []string) error
	// abortBelow ends unfinished uploads of a file, or of the files in a folder.
	abortBelow(ctx context.Context, key string) error
	// upload uploads a file. If resume is set, it may continue an earlier upload, and skip an object that exists.
	upload(ctx context.Context, f file, resume bool) error
	// failFast returns the same store with fewer tries per request.
	failFast() store
	close() error
}

// An object is an object of a store, or a folder in a listing.
type object struct {
	key      string
	size     int64
	modified time.Time
	isDir    bool
	md5      []byte // nil if the store has none
	metadata map[string]string
}

// A content is an object that is being read.
type content struct {
	io.ReadCloser
	size     int64 // of the whole object
	modified time.Time
	version  string    // "" if the store has none
	digest   hash.Hash // of the whole object; nil if the store has none
	want     string    // the digest in hex
}

// listPage is the maximum number of objects that a request lists or removes.
const listPage = 1000

// A Place is a bucket or a prefix of one. Close it when it is no longer used.
type Place struct {
	store  store
	name   string // scheme://bucket
	prefix string // of all keys: "", or ends with a slash
	spool  *vfs.Scratch
	pause  time.Duration // before an interrupted read is continued; doubles each time
}

var (
	_ place.Place      = (*Place)(nil)
	_ place.FastFailer = (*Place)(nil)
	_ place.Prober     = (*Place)(nil)
)

// Schemes returns the URL schemes that Open supports.
func Schemes() []string { return []string{"s3", "gs"} }

// Open opens the location of a URL, s3://BUCKET/PREFIX?OPTION=VALUE&... or gs://BUCKET/PREFIX. Options are described in
// docs/reference/storage.md. Credentials are found as by AWS's and Google's own tools. Open sends one request to the
// store, so that a wrong URL or wrong credentials are reported at once.
func Open(ctx context.Context, rawURL string, cfg Config) (*Place, error) {
	p, err := Make(ctx, rawURL, cfg)
	if err != nil {
		return nil, err
	}
	if err := p.Probe(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Make is like Open, but sends no request.
func Make(ctx context.Context, rawURL string, cfg Config) (*Place, error) {
	u, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	open := openS3
	if u.Scheme == "gs" {
		open = openGCS
	}
	s, err := open(ctx, u)
	if err != nil {
		return nil, err
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &Place{store: s, name: u.Scheme + "://" + u.Host, prefix: prefix, pause: firstPause,
		spool: vfs.NewScratch(cfg.Spool, nil, 0)}, nil
}

// parse parses a URL. Its errors do not contain possible secrets.
func parse(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		before, _, _ := strings.Cut(rawURL, "?")
		if strings.Contains(before, "@") {
			before = "of a bucket"
		}
		return nil, advice.Usage("place %q: not a URL", before)
	}
	switch {
	case !slices.Contains(Schemes(), u.Scheme):
		return nil, advice.Usage("place %s://%s: the schemes are %s", u.Scheme, u.Host, strings.Join(Schemes(), ", "))
	case u.User != nil:
		return nil, advice.Usage("place %s://%s: credentials must not be part of the URL; %s", u.Scheme, u.Host,
			map[string]string{"s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or select a profile of " +
				"~/.aws/credentials with ?profile=", "gs": "set GOOGLE_APPLICATION_CREDENTIALS to a key file"}[u.Scheme])
	case u.Host == "":
		return nil, advice.Usage("place %s: missing bucket name: use %s://bucket/prefix", rawURL, u.Scheme)
	case u.Fragment != "":
		return nil, advice.Usage("place %s://%s%s#%s: write # in a prefix as %%23", u.Scheme, u.Host, u.Path, u.Fragment)
	}
	if prefix := strings.Trim(u.Path, "/"); prefix != "" {
		if err := validKey(prefix); err != nil {
			return nil, advice.Usage("place %s://%s%s: %w", u.Scheme, u.Host, u.Path, err)
		}
	}
	return u, nil
}

// Probe checks that the location exists and can be read.
func (p *Place) Probe(ctx context.Context) error {
	_, _, err := p.store.failFast().list(ctx, p.prefix, "", "", 1)
	return p.explain("open", "", err)
}

// FailFast returns the same location with fewer tries per request.
func (p *Place) FailFast() place.Place {
	prompt := *p
	prompt.store = p.store.failFast()
	return &prompt
}

// Close closes the location.
func (p *Place) Close() error { return errors.Join(p.store.close(), p.spool.Close()) }

// URL returns the location's URL without options.
func (p *Place) URL() string { return strings.TrimSuffix(p.name+"/"+p.prefix, "/") }

// key returns the key of a name.
func (p *Place) key(name string) (string, error) {
	if err := place.ValidName(name); err != nil {
		return "", err
	}
	return p.prefix + name, validKey(name)
}

// Create starts a file. The context also applies to Close, which uploads the file.
func (p *Place) Create(ctx context.Context, name string) (place.Writer, error) {
	key, err := p.key(name)
	if err != nil {
		return nil, err
	}
	digest := sha256.New()
	return place.NewSpool(p.spool.New(), digest, func(data *vfs.Spool) error {
		f := file{key, data, data.Len(), [sha256.Size]byte(digest.Sum(nil))}
		return p.explain("write", name, p.store.upload(ctx, f, false))
	}), nil
}

// validKey returns an error if a name cannot be a key: servers reject it, or proxies in front of them change it. "__0x"
// is how earlier versions would have escaped such characters.
func validKey(name string) error {
	if i := strings.IndexFunc(name, func(r rune) bool { return r < 32 || r == 127 || r == '\ufffd' }); i >= 0 ||
		strings.Contains(name, "__0x") || strings.Contains(name, "../") {
		return fmt.Errorf("name %q: object stores do not support control characters, ../ or __0x: %w", name,
			fs.ErrInvalid)
	}
	return nil
}

// List lists a folder.
func (p *Place) List(ctx context.Context, dir string) ([]place.Info, error) {
	prefix := p.prefix
	if dir != "" {
		key, err := p.key(dir)
		if err != nil {
			return nil, err
		}
		prefix = key + "/"
	}
	var all []place.Info
	err := p.each(ctx, prefix, "/", func(o object) error {
		name := strings.TrimSuffix(o.key[len(prefix):], "/")
		if name != "" && name[0] != '.' { // other programs create folders as empty objects
			all = append(all, place.Info{Name: name, Size: o.size, Modified: o.modified, IsDir: o.isDir})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b place.Info) int { return strings.Compare(a.Name, b.Name) })
	return all, p.explain("list", dir, err)
}

// each calls f with all listed objects.
func (p *Place) each(ctx context.Context, prefix, delimiter string, f func(object) error) error {
	for token := ""; ; {
		objects, next, err := p.store.list(ctx, prefix, delimiter, token, listPage)
		if err != nil {
			return err
		}
		for _, o := range objects {
			if err := f(o); err != nil {
				return err
			}
		}
		if token = next; token == "" {
			return nil
		}
	}
}

// Stat describes a file or folder. A file hides a folder with the same name.
func (p *Place) Stat(ctx context.Context, name string) (place.Info, error) {
	key, err := p.key(name)
	if err != nil {
		return place.Info{}, err
	}
	o, err := p.store.head(ctx, key)
	if err == nil {
		return place.Info{Name: path.Base(name), Size: o.size, Modified: o.modified}, nil
	}
	if isNotFound(err) {
		below, _, listErr := p.store.list(ctx, key+"/", "", "", 1)
		if listErr == nil && len(below) > 0 {
			return place.Info{Name: path.Base(name), IsDir: true}, nil
		}
		if listErr != nil {
			err = listErr
		}
	}
	return place.Info{}, p.explain("stat", name, err)
}

// Rename copies a file on the server and removes the original. It does not support folders.
func (p *Place) Rename(ctx context.Context, from, to string) error {
	old, err := p.key(from)
	if err != nil {
		return err
	}
	name, err := p.key(to)
	if err != nil || old == name {
		return err
	}
	if err := p.store.copy(ctx, name, old); err != nil {
		return p.explain("rename", from, err)
	}
	return p.explain("remove the copied file", from, p.store.removeAll(ctx, []string{old}))
}

// Remove removes a file or a folder with its contents, and their unfinished uploads.
func (p *Place) Remove(ctx context.Context, name string) error {
	key, err := p.key(name)
	if err != nil {
		return err
	}
	return p.explain("remove", name, p.remove(ctx, key))
}

func (p *Place) remove(ctx context.Context, key string) error {
	aborted := p.store.abortBelow(ctx, key)
	batch := []string{key}
	err := p.each(ctx, key+"/", "", func(o object) error {
		batch = append(batch, o.key)
		if len(batch) < listPage {
			return nil
		}
		err := p.store.removeAll(ctx, batch)
		batch = batch[:0]
		return err
	})
	if err == nil && len(batch) > 0 {
		err = p.store.removeAll(ctx, batch)
	}
	return errors.Join(aborted, err)
}
