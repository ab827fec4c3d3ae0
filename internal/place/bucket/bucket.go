// Package bucket is the place that is a bucket of an object store, or what is below a prefix of one: S3 and all that
// speaks as it does, and with the build tag gcs Google's.
//
// An object store has neither folders nor renames. A folder is what the keys of its files begin with; a rename is a
// copy on the server and a removal, so that who is killed in between leaves the file under both names. Reading,
// listing, copying and removing are Go CDK's; files are brought to S3 by its own client, as that alone can go on with
// an upload that was cut off.
//
// A file is kept in a temporary file of this machine until it is closed, and is brought there then: in one request, or
// in parts that become the file when the last one has arrived.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"

	"kumo/internal/advice"
	"kumo/internal/place"
	"kumo/internal/vfs"
)

const firstPause = 200 * time.Millisecond

// A Config has what a URL does not say.
type Config struct {
	Spool string // the folder for what is written and not yet closed; "" for the system's
}

// A Place is a bucket, or what is below a prefix. It is closed when nobody uses it any more.
type Place struct {
	bucket *blob.Bucket
	name   string // scheme://bucket
	prefix string // of all keys: "", or ending with a slash
	spool  *vfs.Scratch
	s3     *s3Client     // nil of a store that is another's
	pause  time.Duration // before a read that was cut off goes on; then twice as long
}

var (
	_ place.Place    = (*Place)(nil)
	_ place.Prompter = (*Place)(nil)
	_ place.Asker    = (*Place)(nil)
)

// Schemes are those of the URLs that Open takes.
func Schemes() []string { return append([]string{"s3"}, moreSchemes...) }

// Open opens the place of a URL, s3://BUCKET/PREFIX?OPTION=VALUE&.... Options are those of Go CDK's s3blob; credentials
// are found as AWS's own programs find them. It asks the store once, so that what is wrong with either is known at
// once.
func Open(ctx context.Context, rawURL string, cfg Config) (*Place, error) {
	p, err := Make(ctx, rawURL, cfg)
	if err != nil {
		return nil, err
	}
	if err := p.Ask(ctx); err != nil {
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
	if u.Scheme != "s3" {
		b, err := openOther(ctx, u)
		if err != nil {
			return nil, err
		}
		return New(b, u.Scheme+"://"+u.Host, strings.Trim(u.Path, "/"), cfg), nil
	}
	return openS3(ctx, u, cfg)
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
		return nil, advice.Usage("place %s://%s: credentials do not belong into a URL; set AWS_ACCESS_KEY_ID and "+
			"AWS_SECRET_ACCESS_KEY, or name a profile of ~/.aws/credentials by ?profile=", u.Scheme, u.Host)
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

// New is the place that is a bucket which is open; name is its URL.
func New(b *blob.Bucket, name, prefix string, cfg Config) *Place {
	if prefix != "" {
		prefix += "/"
	}
	return &Place{bucket: b, name: name, prefix: prefix, pause: firstPause,
		spool: vfs.NewScratch(cfg.Spool, nil, 0)}
}

// Ask asks whether the place is there and may be read.
func (p *Place) Ask(ctx context.Context) error {
	_, _, err := p.bucket.ListPage(ctx, blob.FirstPageToken, 1, &blob.ListOptions{Prefix: p.prefix, BeforeList: few})
	return p.explain("open", "", err)
}

// Prompt is the place with few tries of each request.
func (p *Place) Prompt() place.Place {
	if p.s3 == nil {
		return p
	}
	options, c := p.s3.Options(), *p.s3
	options.Retryer = retryer(fewTries, time.Second)
	c.Client = s3.New(options)
	b, err := s3blob.OpenBucket(context.Background(), c.Client, c.bucket, &c.options)
	if err != nil {
		return p // it was opened before
	}
	prompt := *p
	prompt.bucket, prompt.s3 = b, &c
	return &prompt
}

// Close ends the place.
func (p *Place) Close() error { return errors.Join(p.bucket.Close(), p.spool.Close()) }

// URL is the place's URL without its options.
func (p *Place) URL() string { return strings.TrimSuffix(p.name+"/"+p.prefix, "/") }

// key is where the bucket has a name.
func (p *Place) key(name string) (string, error) {
	if err := place.ValidName(name); err != nil {
		return "", err
	}
	return p.prefix + name, validKey(name)
}

// validKey reports why a name can be no key: Go CDK would write it otherwise than it reads.
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
	err := p.each(ctx, &blob.ListOptions{Prefix: prefix, Delimiter: "/"}, func(o *blob.ListObject) error {
		name := strings.TrimSuffix(o.Key[len(prefix):], "/")
		if name != "" && name[0] != '.' { // other programs make folders by an empty file
			all = append(all, place.Info{Name: name, Size: o.Size, Modified: o.ModTime, IsDir: o.IsDir})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b place.Info) int { return strings.Compare(a.Name, b.Name) })
	return all, p.explain("list", dir, err)
}

// each calls f with all objects that are listed.
func (p *Place) each(ctx context.Context, opts *blob.ListOptions, f func(*blob.ListObject) error) error {
	const page = 1000
	for token := blob.FirstPageToken; len(token) > 0; {
		objects, next, err := p.bucket.ListPage(ctx, token, page, opts)
		if err != nil {
			return err
		}
		for _, o := range objects {
			if err := f(o); err != nil {
				return err
			}
		}
		token = next
	}
	return nil
}

// Stat says what a name stands for. Of a folder a file of the same name hides that it is there.
func (p *Place) Stat(ctx context.Context, name string) (place.Info, error) {
	key, err := p.key(name)
	if err != nil {
		return place.Info{}, err
	}
	attributes, err := p.bucket.Attributes(ctx, key)
	if err == nil {
		return place.Info{Name: path.Base(name), Size: attributes.Size, Modified: attributes.ModTime}, nil
	}
	if gcerrors.Code(err) == gcerrors.NotFound {
		below, _, listErr := p.bucket.ListPage(ctx, blob.FirstPageToken, 1, &blob.ListOptions{Prefix: key + "/"})
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
	if err := p.copy(ctx, name, old); err != nil {
		return p.explain("rename", from, err)
	}
	if err := p.bucket.Delete(ctx, old); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return p.explain("remove what was copied", from, err)
	}
	return nil
}

func (p *Place) copy(ctx context.Context, to, from string) error {
	if p.s3 != nil {
		return p.s3.copy(ctx, to, from)
	}
	return p.bucket.Copy(ctx, to, from, nil)
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
	if p.s3 != nil {
		return errors.Join(p.s3.abortBelow(ctx, key), p.removeS3(ctx, key))
	}
	drop := func(key string) error {
		if err := p.bucket.Delete(ctx, key); gcerrors.Code(err) != gcerrors.NotFound {
			return err
		}
		return nil
	}
	if err := drop(key); err != nil {
		return err
	}
	return p.each(ctx, &blob.ListOptions{Prefix: key + "/"}, func(o *blob.ListObject) error { return drop(o.Key) })
}

// removeS3 removes a thousand objects a request.
func (p *Place) removeS3(ctx context.Context, key string) error {
	batch := []types.ObjectIdentifier{{Key: &key}}
	err := p.each(ctx, &blob.ListOptions{Prefix: key + "/"}, func(o *blob.ListObject) error {
		batch = append(batch, types.ObjectIdentifier{Key: &o.Key})
		if len(batch) < 1000 {
			return nil
		}
		err := p.s3.removeAll(ctx, batch)
		batch = batch[:0]
		return err
	})
	if err != nil || len(batch) == 0 {
		return err
	}
	return p.s3.removeAll(ctx, batch)
}
