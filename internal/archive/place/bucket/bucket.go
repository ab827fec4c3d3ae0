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

// A Config has what a URL does not say.
type Config struct {
	Spool string // the folder for what is written and not yet closed; "" for the system's
}

// A store is a bucket by its server's protocol. Keys are whole; errors are the protocol's own (see isNotFound).
type store interface {
	// head returns what the store has under a key.
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
	// upload uploads a file. If resume is set, it may continue an earlier upload, and need not send a file that is there.
	upload(ctx context.Context, f file, resume bool) error
	// failFast is the same store with few tries of each request.
	failFast() store
	close() error
}

// An object is a file of a store, or a folder in a listing.
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

// listPage is how many objects a request lists or removes at most.
const listPage = 1000

// A Place is a bucket, or what is below a prefix. It is closed when nobody uses it any more.
type Place struct {
	store  store
	name   string // scheme://bucket
	prefix string // of all keys: "", or ending with a slash
	spool  *vfs.Scratch
	pause  time.Duration // before a read that was cut off goes on; then twice as long
}

var (
	_ place.Place      = (*Place)(nil)
	_ place.FastFailer = (*Place)(nil)
	_ place.Prober     = (*Place)(nil)
)

// Schemes are those of the URLs that Open takes.
func Schemes() []string { return []string{"s3", "gs"} }

// Open opens the place of a URL, s3://BUCKET/PREFIX?OPTION=VALUE&... or gs://BUCKET/PREFIX. Options are in
// docs/reference/storage.md; credentials are found as AWS's and Google's own programs find them. It asks the store once,
// so that a wrong URL or wrong credentials are reported at once.
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

// Make is Open without asking the store.
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

// parse parses a URL. Its errors do not repeat what may be a secret.
func parse(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		before, _, _ := strings.Cut(rawURL, "?")
		if strings.Contains(before, "@") {
			before = "of a bucket"
		}
		return nil, advice.Usage("place %q: this is no URL", before)
	}
	switch {
	case !slices.Contains(Schemes(), u.Scheme):
		return nil, advice.Usage("place %s://%s: the schemes are %s", u.Scheme, u.Host, strings.Join(Schemes(), ", "))
	case u.User != nil:
		return nil, advice.Usage("place %s://%s: credentials do not belong into a URL; %s", u.Scheme, u.Host,
			map[string]string{"s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile of " +
				"~/.aws/credentials by ?profile=", "gs": "name a key file by GOOGLE_APPLICATION_CREDENTIALS"}[u.Scheme])
	case u.Host == "":
		return nil, advice.Usage("place %s: the bucket's name is missing: %s://bucket/prefix", rawURL, u.Scheme)
	case u.Fragment != "":
		return nil, advice.Usage("place %s://%s%s#%s: a # in a prefix is written %%23", u.Scheme, u.Host, u.Path, u.Fragment)
	}
	if prefix := strings.Trim(u.Path, "/"); prefix != "" {
		if err := validKey(prefix); err != nil {
			return nil, advice.Usage("place %s://%s%s: %w", u.Scheme, u.Host, u.Path, err)
		}
	}
	return u, nil
}

// Probe asks whether the place is there and may be read.
func (p *Place) Probe(ctx context.Context) error {
	_, _, err := p.store.failFast().list(ctx, p.prefix, "", "", 1)
	return p.explain("open", "", err)
}

// FailFast is the place with few tries of each request.
func (p *Place) FailFast() place.Place {
	prompt := *p
	prompt.store = p.store.failFast()
	return &prompt
}

// Close ends the place.
func (p *Place) Close() error { return errors.Join(p.store.close(), p.spool.Close()) }

// URL is the place's URL without its options.
func (p *Place) URL() string { return strings.TrimSuffix(p.name+"/"+p.prefix, "/") }

// key is where the bucket has a name.
func (p *Place) key(name string) (string, error) {
	if err := place.ValidName(name); err != nil {
		return "", err
	}
	return p.prefix + name, validKey(name)
}

// Create begins a file. The context is that of Close, too, which brings it to the store.
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

// validKey reports why a name can be no key: servers do not accept it, or proxies before them change it. "__0x" is how
// earlier versions would have escaped such characters.
func validKey(name string) error {
	if i := strings.IndexFunc(name, func(r rune) bool { return r < 32 || r == 127 || r == '\ufffd' }); i >= 0 ||
		strings.Contains(name, "__0x") || strings.Contains(name, "../") {
		return fmt.Errorf("name %q: an object store takes no control characters, no ../ and no __0x: %w", name,
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
		if name != "" && name[0] != '.' { // other programs make folders by an empty file
			all = append(all, place.Info{Name: name, Size: o.size, Modified: o.modified, IsDir: o.isDir})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b place.Info) int { return strings.Compare(a.Name, b.Name) })
	return all, p.explain("list", dir, err)
}

// each calls f with all objects that are listed.
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

// Stat says what a name stands for. Of a folder a file of the same name hides that it is there.
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

// Rename copies a file on the server and removes it. It is for files alone.
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
	return p.explain("remove what was copied", from, p.store.removeAll(ctx, []string{old}))
}

// Remove removes a file, and a folder with all that is in it; so it does with uploads that are not at their end.
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
