// Package gcs tests storage locations in Google Cloud Storage with fake-gcs-server, a server of its protocol. It is a
// separate module, so that kumo does not depend on that: go test -C bench/gcs ./...
package gcs

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/bucket"
	"kumo/internal/archive/place/placetest"
	"kumo/internal/base/advice"
)

const bucketName = "kumo-test"

// serve starts a server with a bucket and returns its URL.
func serve(t *testing.T) string {
	s, err := fakestorage.NewServerWithOptions(fakestorage.Options{Scheme: "http", Host: "127.0.0.1",
		PublicHost: "127.0.0.1",
		Writer:     io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	s.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: bucketName})
	return s.URL()
}

func open(t *testing.T, at string) *bucket.Place {
	t.Helper()
	p, err := bucket.Open(t.Context(), at, bucket.Config{Spool: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func at(endpoint, prefix string) string {
	return fmt.Sprintf("gs://%s/%s?anonymous=true&endpoint=%s", bucketName, prefix, url.QueryEscape(endpoint))
}

// opener returns a function that opens a new prefix each time.
func opener(endpoint string) func(t *testing.T) place.Place {
	var n atomic.Int32
	return func(t *testing.T) place.Place { return open(t, at(endpoint, fmt.Sprintf("p/%d", n.Add(1)))) }
}

func TestPlace(t *testing.T) { placetest.Run(t, opener(serve(t))) }

func TestUploads(t *testing.T) { placetest.RunUploads(t, opener(serve(t)), 20_000, 17<<20) }

// The server can also be set by Google's environment variable.
func TestAnEmulator(t *testing.T) {
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(serve(t), "http://"))
	p := open(t, "gs://"+bucketName+"/x")
	if err := place.WriteFile(t.Context(), p, "f", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got, err := place.ReadFile(t.Context(), p, "f"); err != nil || string(got) != "x" {
		t.Errorf("%q %v", got, err)
	}
}

// way is a proxy that corrupts a byte of uploads, and counts uploads.
type way struct {
	changes bool
	uploads atomic.Int32
}

func (w *way) before(t *testing.T, endpoint string) string {
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/upload/") {
			w.uploads.Add(1)
			if data, err := io.ReadAll(r.Body); err == nil {
				if w.changes {
					data = bytes.ReplaceAll(data, []byte("library"), []byte("lIbrary"))
				}
				r.Body = io.NopCloser(bytes.NewReader(data))
			}
		}
		proxy.ServeHTTP(out, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Corrupted uploads are rejected, and present files are not sent again.
func TestUploadsAreCompared(t *testing.T) {
	w := &way{}
	p := open(t, at(w.before(t, serve(t)), "x"))
	data := []byte("The library opens at nine.")
	upload := func() error {
		return p.Upload(t.Context(), "f", bytes.NewReader(data), int64(len(data)), sha256.Sum256(data))
	}
	w.changes = true
	if err := upload(); err == nil {
		t.Error("other bytes are taken for a file")
	} else {
		t.Log(err)
	}
	if _, err := p.Stat(t.Context(), "f"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("other bytes are there: %v", err)
	}
	w.changes = false
	if err := upload(); err != nil {
		t.Fatal(err)
	}
	sent := w.uploads.Load()
	if err := upload(); err != nil || w.uploads.Load() != sent {
		t.Errorf("it was sent again: %v", err)
	}
	if got, err := place.ReadFile(t.Context(), p, "f"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%q %v", got, err)
	}
}

// An unavailable store is an error, not an endless wait.
func TestAStoreThatIsAway(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	_, err := bucket.Open(t.Context(), at(s.URL, "x"), bucket.Config{})
	if err == nil || !strings.Contains(err.Error(), "cannot reach") || advice.Of(err) == "" || !place.IsTransient(err) {
		t.Errorf("the error is %v, which advises %q", err, advice.Of(err))
	}
}

func TestURLs(t *testing.T) {
	for name, word := range map[string]string{
		"gs://b/x?region=eu":        "unknown option region",
		"gs://b/x?anonymous=maybe":  "true or false",
		"gs://b/x?endpoint=host:80": "https://HOST:PORT",
		"gs://me:hunter2@b/x":       "credentials must not be part",
	} {
		_, err := bucket.Open(t.Context(), name, bucket.Config{})
		if !advice.IsUsage(err) || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := bucket.Open(t.Context(), strings.Replace(at(serve(t), "x"), bucketName, "nobody", 1), bucket.Config{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a bucket that is not there: %v", err)
	}
}
