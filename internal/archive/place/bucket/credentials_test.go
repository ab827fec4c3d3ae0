package bucket

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"kumo/internal/archive/place/bucket/buckettest"
)

// Without credentials, the error advises what to set. The instance metadata service is queried only for AWS's own
// stores, and not with ?anonymous=true.
func TestNoCredentials(t *testing.T) {
	fake := buckettest.Fake(t)
	var asked atomic.Int32
	machine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(machine.Close)
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
		"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": machine.URL} {
		t.Setenv(name, value)
	}
	for _, c := range []struct {
		endpoint, more string
		asks           bool
	}{
		{fake, "", false}, {fake, "&anonymous=true", false}, {"http://s3.us-east-1.amazonaws.com", "", true},
	} {
		asked.Store(0)
		said := stderrOf(t, func() {
			at := "s3://" + buckettest.Bucket + "/x?use_path_style=true&endpoint=" + url.QueryEscape(c.endpoint) + c.more
			p, err := Open(t.Context(), at, Config{})
			if c.more != "" {
				if err != nil || p.Close() != nil {
					t.Errorf("%s: %v", at, err)
				}
				return
			}
			failing(t, err, nil, "no credentials found", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "anonymous=true")
		})
		if said != "" {
			t.Errorf("standard error has %q", said)
		}
		if asks := asked.Load() > 0; asks != c.asks {
			t.Errorf("%s%s: the machine was asked: %v", c.endpoint, c.more, asks)
		}
	}
	if !isAmazons("https://vpce-1.s3.eu-west-1.vpce.amazonaws.com") || isAmazons("http://amazonaws.com.example.org") {
		t.Error("whose endpoint is it?")
	}
}

// stderrOf returns what f writes to standard error.
func stderrOf(t *testing.T, f func()) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	was := os.Stderr
	os.Stderr = file
	defer func() { os.Stderr = was }()
	f()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(file)
	if err != nil || file.Close() != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}
