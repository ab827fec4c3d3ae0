package hdfs

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/drivertest"

	"kumo/internal/hadoopconf/hadooptest"
)

// TestBucket is Go CDK's conformance suite for drivers.
func TestBucket(t *testing.T) {
	url := hadooptest.Folder(t)
	drivertest.RunConformanceTests(t, func(_ context.Context, t *testing.T) (drivertest.Harness, error) {
		return &harness{t, url}, nil
	}, nil)
}

type harness struct {
	t   *testing.T
	url string
}

func (h *harness) MakeDriver(ctx context.Context) (driver.Bucket, error) {
	p, err := Open(ctx, h.url, Config{Conf: hadooptest.Conf(h.t), Spool: h.t.TempDir(), Patience: 3 * time.Second})
	if err != nil {
		return nil, err
	}
	return &bucket{p}, nil
}

func (*harness) MakeDriverForNonexistentBucket(context.Context) (driver.Bucket, error) {
	return nil, nil
}
func (*harness) HTTPClient() *http.Client         { return nil }
func (*harness) SupportsCopy() bool               { return true }
func (*harness) SupportsNonSlashDelimiters() bool { return true }
func (*harness) Close()                           {}

// FuzzKeys: a key comes back from its path, and two keys have two paths.
func FuzzKeys(f *testing.F) {
	for _, key := range []string{"a/b", "a//b", "/a", "a/", "../a/..", ".a/.b", "a:b%3A", "a\x00\n", "//", "ü/字", "a.b",
		"%zz"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if key == "" {
			return // which is no key
		}
		there := escapeKey(key)
		if unescapeKey(there) != key || strings.Contains("/"+there+"/", "//") || strings.Contains("/"+there, "/.") {
			t.Errorf("%q is %q there and comes back as %q", key, there, unescapeKey(there))
		}
		_ = unescapeKey(key) // what another program has written
	})
}
