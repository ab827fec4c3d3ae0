package bucket

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/bucket/buckettest"
	"kumo/internal/archive/place/placetest"
	"kumo/internal/base/advice"
)

func (p *Place) gcs() *gcsClient { return p.store.(*gcsClient) }

func upload(t *testing.T, p *Place, name string, data []byte) error {
	t.Helper()
	return p.Upload(t.Context(), name, bytes.NewReader(data), int64(len(data)), sha256.Sum256(data))
}

func TestGoogleURLs(t *testing.T) {
	for name, word := range map[string]string{
		"gs://b/x?region=eu":        "unknown option region",
		"gs://b/x?anonymous=maybe":  "true or false",
		"gs://b/x?endpoint=host:80": "https://HOST:PORT",
		"gs://me:hunter2@b/x":       "GOOGLE_APPLICATION_CREDENTIALS",
	} {
		_, err := Open(t.Context(), name, Config{})
		if !advice.IsUsage(err) || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	g := buckettest.Google(t)
	at := buckettest.GoogleURL(g.URL, "x")
	_, err := Open(t.Context(), strings.Replace(at, buckettest.Bucket, "nobody", 1), Config{})
	failing(t, err, fs.ErrNotExist, "the bucket does not exist", "gcloud storage buckets create gs://nobody")
	g.Token = "another"
	_, err = Open(t.Context(), at, Config{})
	failing(t, err, fs.ErrPermission, "rejects the credentials: status 401 Unauthorized: Invalid Credentials",
		"GOOGLE_APPLICATION_CREDENTIALS")
}

func TestGoogleEmulator(t *testing.T) {
	g := buckettest.Google(t)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none"))
	for _, host := range []string{g.URL, strings.TrimPrefix(g.URL, "http://")} {
		t.Setenv("STORAGE_EMULATOR_HOST", host)
		p := open(t, "gs://"+buckettest.Bucket+"/x")
		if err := place.WriteFile(t.Context(), p, "f", []byte("x")); err != nil {
			t.Error(err)
		}
	}
}

// A key file, user credentials and a machine account all get a token that the store accepts.
func TestGoogleCredentials(t *testing.T) {
	g := buckettest.Google(t)
	g.Token = "the-token"
	var asked []string
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ParseForm() == nil && r.URL.Path != "/computeMetadata/v1/project/project-id" {
			asked = append(asked, r.URL.Path+" "+r.Form.Get("grant_type"))
		}
		w.Header().Set("Metadata-Flavor", "Google")
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token": %q, "token_type": "Bearer", "expires_in": 3600}`, g.Token)
	}))
	t.Cleanup(tokens.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	private := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	home := t.TempDir()
	t.Setenv("HOME", home) // gcloud's folder for user credentials
	t.Setenv("APPDATA", home)
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	at := strings.Replace(buckettest.GoogleURL(g.URL, "x"), "anonymous=true&", "", 1)
	for _, c := range []struct {
		name string
		file map[string]string
		want string
	}{
		{"key file", map[string]string{"type": "service_account", "client_email": "kumo@example.org", "private_key_id": "1",
			"private_key": private, "token_uri": tokens.URL + "/key"}, "/key urn:ietf:params:oauth:grant-type:jwt-bearer"},
		{"user", map[string]string{"type": "authorized_user", "client_id": "id", "client_secret": "secret",
			"refresh_token": "refresh", "token_uri": tokens.URL + "/user"}, "/user refresh_token"},
		{"machine", nil, "/computeMetadata/v1/instance/service-accounts/default/token "},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := filepath.Join(home, "file.json")
			if c.file == nil {
				name = ""
				t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(tokens.URL, "http://"))
			} else if data, err := json.Marshal(c.file); err != nil || os.WriteFile(name, data, 0o600) != nil {
				t.Fatal(err)
			}
			t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", name)
			asked = nil
			p := open(t, at)
			if err := place.WriteFile(t.Context(), p, "f", []byte("x")); err != nil {
				t.Error(err)
			}
			if !slices.Contains(asked, c.want) || len(asked) != 1 {
				t.Errorf("tokens were asked for by %q", asked)
			}
		})
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(home, "missing.json"))
	_, err = Make(t.Context(), at, Config{})
	failing(t, err, nil, "find credentials for gs://"+buckettest.Bucket, "missing.json", "gcloud auth")
}

// With all kinds of faults, a file is complete or does not exist, and exists after some attempts.
func TestGoogleThroughFaults(t *testing.T) {
	const chunk = 256 << 10
	proxy := buckettest.Proxy(t, buckettest.Google(t).URL, 3)
	p := open(t, buckettest.GoogleURL(proxy.Endpoint, "x"))
	p.gcs().chunk = chunk
	proxy.Set(map[buckettest.Fault]float64{buckettest.Busy: 0.15, buckettest.Cut: 0.1, buckettest.Lost: 0.1,
		buckettest.Short: 0.05, buckettest.Changed: 0.05})
	for i, size := range []int{1000, 9*chunk + 77, 2 * chunk} {
		data := placetest.RandomBytes(uint64(i), size)
		again(t, func() error { return upload(t, p, "f", data) })
		again(t, func() error {
			got, err := place.ReadFile(t.Context(), p, "f")
			if err == nil && !bytes.Equal(got, data) {
				t.Errorf("%d bytes came back of %d, or others", len(got), size)
			}
			return err
		})
	}
	seen, all := proxy.Seen()
	t.Logf("%d requests, of which failed %v", all, seen)
	if seen[buckettest.Cut] == 0 || seen[buckettest.Lost] == 0 {
		t.Error("not all faults were seen")
	}
}

func again(t *testing.T, f func() error) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil {
			return
		}
		if attempt == 50 {
			t.Fatalf("after %d attempts: %v", attempt, err)
		}
	}
}

// An interrupted chunk is sent again, not the whole file.
func TestGoogleUploadContinues(t *testing.T) {
	const chunk, chunks = 256 << 10, 20
	proxy := buckettest.Proxy(t, buckettest.Google(t).URL, 5)
	p := open(t, buckettest.GoogleURL(proxy.Endpoint, "x"))
	p.gcs().chunk = chunk
	proxy.Set(map[buckettest.Fault]float64{buckettest.Lost: 0.2})
	data := placetest.RandomBytes(1, chunks*chunk)
	if err := upload(t, p, "f", data); err != nil {
		t.Fatal(err)
	}
	seen, _ := proxy.Seen()
	if seen[buckettest.Lost] < 3 {
		t.Fatalf("failed: %v", seen)
	}
	if sent := proxy.Sent(); sent > int64(len(data))+100_000 {
		t.Errorf("%d bytes were sent of %d, though none was lost on its way", sent, len(data))
	}
	before := proxy.Sent()
	proxy.Set(nil)
	if err := upload(t, p, "f", data); err != nil || proxy.Sent() != before {
		t.Errorf("it was sent again: %d bytes, %v", proxy.Sent()-before, err)
	}
}

// If the session ends, the upload starts over.
func TestGoogleSessionEnds(t *testing.T) {
	const chunk = 256 << 10
	g := buckettest.Google(t)
	p := open(t, buckettest.GoogleURL(g.URL, "x"))
	p.gcs().chunk = chunk
	data := placetest.RandomBytes(1, 4*chunk)
	passes, ended := 0, false
	src := readAt(func(b []byte, off int64) (int, error) {
		if off == 0 {
			passes++
		}
		if passes == 2 && off > 2*chunk && !ended { // the first pass computes the digest, the second uploads
			ended = true
			g.EndSessions()
		}
		return bytes.NewReader(data).ReadAt(b, off)
	})
	err := p.Upload(t.Context(), "f", src, int64(len(data)), sha256.Sum256(data))
	if err != nil || !ended || passes != 3 {
		t.Fatalf("ended: %v, read %d times: %v", ended, passes, err)
	}
	if got, err := place.ReadFile(t.Context(), p, "f"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes: %v", len(got), err)
	}
}

type readAt func(b []byte, off int64) (int, error)

func (f readAt) ReadAt(b []byte, off int64) (int, error) { return f(b, off) }

// Corrupted uploads do not appear, and corrupted reads are errors.
func TestGoogleBytesAreCompared(t *testing.T) {
	g := buckettest.Google(t)
	proxy := buckettest.Proxy(t, g.URL, 1)
	p := open(t, buckettest.GoogleURL(proxy.Endpoint, "x"))
	data := placetest.RandomBytes(1, 100_000)
	proxy.Set(map[buckettest.Fault]float64{buckettest.Changed: 1})
	if err := upload(t, p, "f", data); err == nil {
		t.Error("other bytes are taken for a file")
	}
	proxy.Set(nil)
	if _, err := p.Stat(t.Context(), "f"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("other bytes are there: %v", err)
	}
	if err := upload(t, p, "f", data); err != nil {
		t.Fatal(err)
	}
	g.DropMD5() // as for a composite object: then the content is read back
	before := proxy.Sent()
	if err := upload(t, p, "f", data); err != nil || proxy.Sent() != before {
		t.Errorf("it was sent again: %v", err)
	}
	proxy.Set(map[buckettest.Fault]float64{buckettest.Wrong: 1})
	if _, err := place.ReadFile(t.Context(), p, "f"); !errors.Is(err, errChanged) {
		t.Errorf("the error is %v", err)
	}
}

// An interrupted read continues, but not with a replaced file.
func TestGoogleReadsContinue(t *testing.T) {
	proxy := buckettest.Proxy(t, buckettest.Google(t).URL, 7)
	p := open(t, buckettest.GoogleURL(proxy.Endpoint, "x"))
	data := placetest.RandomBytes(1, 1<<20)
	if err := place.WriteFile(t.Context(), p, "f", data); err != nil {
		t.Fatal(err)
	}
	proxy.Set(map[buckettest.Fault]float64{buckettest.Short: 0.7})
	r, err := p.Open(t.Context(), "f", 777, -1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, data[777:]) {
		t.Errorf("%d bytes: %v", len(got), err)
	}
	proxy.Set(nil)
	if r, err = p.Open(t.Context(), "f", 0, -1); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := place.WriteFile(t.Context(), p, "f", placetest.RandomBytes(2, 1<<20)); err != nil {
		t.Fatal(err)
	}
	in := r.(*reader)
	_ = in.Body.Close() // simulates a lost connection
	in.Body = nil
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, errReplaced) {
		t.Errorf("another file is read on: %v", err)
	}
}

// A busy store is an error after some tries, fewer after FailFast. Permanent errors are not retried.
func TestGoogleTries(t *testing.T) {
	proxy := buckettest.Proxy(t, buckettest.Google(t).URL, 1)
	p := open(t, buckettest.GoogleURL(proxy.Endpoint, "x"))
	_, opened := proxy.Seen()
	proxy.Set(map[buckettest.Fault]float64{buckettest.Busy: 1})
	count := func(p place.Place) int {
		_, before := proxy.Seen()
		err := place.WriteFile(t.Context(), p, "f", []byte("x"))
		if !place.IsTransient(err) || !strings.Contains(err.Error(), "write gs://kumo-test/x/f: status 503") {
			t.Errorf("the error is %v", err)
		}
		_, after := proxy.Seen()
		return after - before
	}
	if n := count(p); n != gcsTries {
		t.Errorf("%d requests", n)
	}
	if n := count(p.FailFast()); n != promptTries {
		t.Errorf("%d requests of a prompt place", n)
	}
	proxy.Set(nil)
	if _, err := p.Stat(t.Context(), "nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, all := proxy.Seen(); all != opened+gcsTries+promptTries+2 { // and the check whether it is a folder
		t.Errorf("%d requests in all", all)
	}
}
