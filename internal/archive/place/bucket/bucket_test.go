package bucket

import (
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/bucket/buckettest"
	"kumo/internal/archive/place/placetest"
	"kumo/internal/base/advice"
)

func open(t testing.TB, url string) *Place {
	t.Helper()
	p, err := Open(t.Context(), url, Config{Spool: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	// Tests use short pauses between tries.
	p.pause = time.Millisecond
	switch c := p.store.(type) {
	case *s3Client:
		options := c.Options()
		options.Retryer = retryer(tries, 5*time.Millisecond)
		c.Client = s3.New(options)
	case *gcsClient:
		c.pause = time.Millisecond
	}
	return p
}

func (p *Place) s3() *s3Client { return p.store.(*s3Client) }

// openers open an empty location of each kind.
var openers = map[string]func(t *testing.T) func(t *testing.T) place.Place{
	"fake": func(t *testing.T) func(t *testing.T) place.Place {
		return prefixes(buckettest.URL, buckettest.Fake(t))
	},
	"gateway": func(t *testing.T) func(t *testing.T) place.Place {
		return prefixes(buckettest.URL, buckettest.Gateway(t))
	},
	"google": func(t *testing.T) func(t *testing.T) place.Place {
		return prefixes(buckettest.GoogleURL, buckettest.Google(t).URL)
	},
}

// prefixes opens a new prefix each time.
func prefixes(url func(endpoint, prefix string) string, endpoint string) func(t *testing.T) place.Place {
	var n atomic.Int32
	return func(t *testing.T) place.Place {
		return open(t, url(endpoint, "p/"+string('a'+n.Add(1))))
	}
}

func TestPlace(t *testing.T) {
	for name, opener := range openers {
		t.Run(name, func(t *testing.T) { placetest.Run(t, opener(t)) })
	}
}

func TestAWholeBucketIsAPlace(t *testing.T) {
	p := open(t, buckettest.URL(buckettest.Fake(t), ""))
	if err := place.WriteFile(t.Context(), p, "f", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if all, err := p.List(t.Context(), ""); err != nil || len(all) != 1 || p.URL() != "s3://"+buckettest.Bucket {
		t.Errorf("%v %v, %s", all, err, p.URL())
	}
}

// failing checks that an error names the operation and the object, has advice, and contains no secrets.
func failing(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	if err == nil || kind != nil && !errors.Is(err, kind) {
		t.Errorf("the error is %v", err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error()+"\n"+advice.Of(err), word) {
			t.Errorf("%q, which advises %q, does not say %q", err, advice.Of(err), word)
		}
	}
	if strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 || advice.Of(err) == "" && !advice.IsUsage(err) {
		t.Errorf("%q advises %q", err, advice.Of(err))
	}
	if strings.Contains(err.Error(), buckettest.Secret) {
		t.Errorf("%q tells a secret", err)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	endpoint := buckettest.Gateway(t)
	try := func(url string) error {
		p, err := Open(t.Context(), url, Config{})
		if err == nil {
			_ = p.Close()
		}
		return err
	}
	good := buckettest.URL(endpoint, "x")
	if err := try(good); err != nil {
		t.Fatal(err)
	}
	failing(t, try(strings.Replace(good, buckettest.Bucket, "nobody", 1)), fs.ErrNotExist, "open s3://nobody/x",
		"the bucket does not exist", "aws s3 mb s3://nobody")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	failing(t, try(good), fs.ErrPermission, "rejects the credentials", "AWS_SECRET_ACCESS_KEY")
	t.Setenv("AWS_ACCESS_KEY_ID", "nobody")
	failing(t, try(good), fs.ErrPermission, "rejects the credentials")
	failing(t, try(good+"&anonymous=true"), fs.ErrPermission, "access denied", "permission")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	failing(t, try(good), nil, "no credentials found", "AWS_ACCESS_KEY_ID", "anonymous=true")
	buckettest.Credentials(t)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close() // nothing listens there
	failing(t, try(buckettest.URL("http://"+address, "x")), nil, "cannot reach the store", address, "endpoint=")
	failing(t, try(good+"&profile=nobody"), nil, "nobody")
}

// Temporary and permanent errors are distinguished.
func TestWhatPasses(t *testing.T) {
	good := buckettest.URL(buckettest.Fake(t), "x")
	ask := func(url string) error {
		t.Helper()
		p, err := Make(t.Context(), url, Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		return p.FailFast().(*Place).Probe(t.Context())
	}
	if err := ask(good); err != nil {
		t.Fatal(err)
	}
	answers := func(status int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(s.Close)
		return buckettest.URL(s.URL, "x")
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for url, want := range map[string]bool{
		buckettest.URL(closed.URL, "x"):                       true,
		buckettest.URL("http://nowhere.invalid", "x"):         true,
		answers(http.StatusServiceUnavailable):                true,
		answers(http.StatusTooManyRequests):                   true,
		answers(http.StatusForbidden):                         false,
		answers(http.StatusBadRequest):                        false,
		answers(http.StatusNotImplemented):                    false,
		strings.Replace(good, buckettest.Bucket, "nobody", 1): false,
		buckettest.URL("http://127.0.0.1:99999", "x"):         false,
		strings.Replace(good, "http%3A", "https%3A", 1):       false,
		strings.Replace(good, "http%3A%2F%2F127", "127", 1):   false,
	} {
		if err := ask(url); err == nil || place.IsTransient(err) != want {
			t.Errorf("%s: %v passes: %v", url, err, !want)
		}
	}
}

func TestURLs(t *testing.T) {
	buckettest.Credentials(t)
	for url, word := range map[string]string{
		"s3://key:hunter2hunter2@bucket/x":                     "credentials must not be part of the URL",
		"s3://key:hunter2hunter2@buck%zzet/x":                  "not a URL",
		"s3:///x":                                              "missing bucket name",
		"s3://bucket/x?no_such=1":                              "no_such",
		"s3://bucket/x?use_path_style=perhaps":                 "use_path_style",
		"s3://bucket/a/../b":                                   "../",
		"s3://bucket/a#b":                                      "%23",
		"gopher://bucket/x":                                    "the schemes are s3, gs",
		"s3://bucket/x?request_checksum_calculation=sometimes": "sometimes",
	} {
		_, err := Open(t.Context(), url, Config{})
		failing(t, err, nil, word)
		if !advice.IsUsage(err) {
			t.Errorf("%s: %v is no error of usage", url, err)
		}
	}
}
