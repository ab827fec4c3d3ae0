// Package places opens storage locations by URL or path, and selects their implementation. It is separate from wire, so
// that programs that import kumo link no clients of object stores.
package places

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/bucket"
	"kumo/internal/archive/place/file"
	"kumo/internal/archive/place/hdfs"
	"kumo/internal/base/advice"
	"kumo/internal/base/vfs"
	"kumo/internal/content/hadoopconf"
)

// IsURL reports whether a name is the URL of a storage location, not the path of a folder.
func IsURL(name string) bool {
	scheme, _, is := strings.Cut(name, "://")
	return is && !strings.ContainsAny(scheme, `/\`)
}

// Open opens a storage location by its URL, or a folder by its path. The caller closes it if it is an io.Closer.
func Open(ctx context.Context, name string) (place.Place, error) {
	p, err := OpenLazy(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := place.Probe(ctx, p); err != nil {
		if c, is := p.(io.Closer); is {
			err = errors.Join(err, c.Close())
		}
		return nil, err
	}
	return p, nil
}

// OpenLazy is Open without checking that the location's server is reachable; see [place.Asker].
func OpenLazy(ctx context.Context, name string) (place.Place, error) {
	if !IsURL(name) {
		return folder(name)
	}
	switch scheme, _, _ := strings.Cut(name, "://"); {
	case scheme == "hdfs":
		conf, err := HadoopConf()
		if err != nil {
			return nil, err
		}
		return hdfs.Make(name, hdfs.Config{Conf: conf})
	case slices.Contains(bucket.Schemes(), scheme):
		return bucket.Make(ctx, name, bucket.Config{})
	}
	u, err := url.Parse(name)
	if err != nil {
		return nil, advice.Usage("place %q: %w", name, err)
	}
	if u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return nil, advice.Usage("place %q: give a folder as a path, or a URL such as file:///path, s3://bucket/prefix, "+
			"gs://bucket/prefix or hdfs://host:port/path", name)
	}
	return folder(filepath.FromSlash(u.Path))
}

// folder opens a folder on the local disk, which need not exist yet.
func folder(name string) (place.Place, error) {
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		return nil, advice.Usage("place %s: it is a file; give a folder", name)
	}
	return file.Open(name, vfs.OS)
}

// HadoopConf returns the Hadoop configuration of this machine, if there is one. It is optional, because a URL may be
// sufficient.
func HadoopConf() (hadoopconf.Conf, error) {
	dir := hadoopconf.Dir()
	if dir == "" {
		return hadoopconf.Conf{}, nil
	}
	return hadoopconf.Load(dir)
}
