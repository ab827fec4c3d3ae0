package bucket

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/bucket/buckettest"
	"kumo/internal/archive/place/placetest"
)

// small is the minimum size that S3 allows for a part other than the last.
const small = 5 << 20

func TestUploads(t *testing.T) {
	for name, opener := range openers {
		t.Run(name, func(t *testing.T) {
			opened, part := opener(t), int64(50_000)
			if name == "gateway" {
				part = small
			}
			placetest.RunUploads(t, func(t *testing.T) place.Place {
				p := opened(t).(*Place)
				switch c := p.store.(type) {
				case *s3Client:
					c.part = part
				case *gcsClient:
					c.chunk = part
				}
				return p
			}, 20_000, 2*int(part)+12_345)
		})
	}
}

// parts returns the number of uploaded parts.
func (p *Place) parts(t *testing.T, key string) int {
	t.Helper()
	_, have, err := p.s3().unfinished(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return len(have)
}

// Parts uploaded by another process are not sent again, as the proxy shows.
func TestAnUploadGoesOn(t *testing.T) {
	endpoint := buckettest.Gateway(t)
	proxy := buckettest.Proxy(t, endpoint, 1)
	url := buckettest.URL(proxy.Endpoint, "x")
	p := open(t, url)
	p.s3().part = small
	data := placetest.RandomBytes(1, 4*small+100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// It is stopped when it reads the last of five parts.
	src := &stopping{bytes.NewReader(data), int64(len(data) - 1), func() {
		for begin := time.Now(); p.parts(t, "x/f") < 3 && time.Since(begin) < time.Minute; {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}}
	if err := p.Upload(ctx, "f", src, int64(len(data)), sha256.Sum256(data)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	kept := p.parts(t, "x/f")
	if kept < 3 {
		t.Fatalf("%d parts are there", kept)
	}
	other := open(t, url)
	other.s3().part = small
	before := proxy.Sent()
	if err := other.Upload(t.Context(), "f", bytes.NewReader(data), int64(len(data)), sha256.Sum256(data)); err != nil {
		t.Fatal(err)
	}
	if sent, most := proxy.Sent()-before, int64(len(data)-kept*small+100_000); sent > most {
		t.Errorf("%d bytes were sent of %d though %d parts were there", sent, len(data), kept)
	}
	if got, err := place.ReadFile(t.Context(), other, "f"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes: %v", len(got), err)
	}
	before = proxy.Sent()
	if err := p.Upload(t.Context(), "f", bytes.NewReader(data), int64(len(data)), sha256.Sum256(data)); err != nil {
		t.Fatal(err)
	}
	if sent := proxy.Sent() - before; sent > 10_000 {
		t.Errorf("%d bytes were sent of a file that is there", sent)
	}
}

type stopping struct {
	io.ReaderAt
	at   int64
	stop func()
}

func (s *stopping) ReadAt(b []byte, off int64) (int, error) {
	if off+int64(len(b)) > s.at && s.stop != nil {
		s.stop()
		s.stop = nil
	}
	return s.ReaderAt.ReadAt(b, off)
}

// With all kinds of faults, a file is complete or does not exist, and exists after some attempts.
func TestUploadsThroughFaults(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	proxy := buckettest.Proxy(t, buckettest.Gateway(t), seed)
	p := open(t, buckettest.URL(proxy.Endpoint, "x"))
	p.s3().part = small
	proxy.Set(map[buckettest.Fault]float64{buckettest.Busy: 0.15, buckettest.Cut: 0.1, buckettest.Lost: 0.1,
		buckettest.Short: 0.05, buckettest.Changed: 0.1})
	for i, size := range []int{1000, 3*small + 77, 2 * small} {
		data := placetest.RandomBytes(uint64(i), size)
		for attempt := 1; ; attempt++ {
			err := p.Upload(t.Context(), "f", bytes.NewReader(data), int64(size), sha256.Sum256(data))
			if err == nil {
				break
			}
			if attempt == 20 {
				t.Fatalf("after %d attempts: %v", attempt, err)
			}
		}
		for attempt := 1; ; attempt++ {
			got, err := place.ReadFile(t.Context(), p, "f")
			if err == nil {
				if !bytes.Equal(got, data) {
					t.Errorf("%d bytes came back of %d, or others", len(got), size)
				}
				break
			}
			if attempt == 20 {
				t.Fatalf("read: %v", err)
			}
		}
	}
	seen, all := proxy.Seen()
	t.Logf("%d requests, of which failed %v", all, seen)
}

func TestABusyStoreIsGivenUp(t *testing.T) {
	proxy := buckettest.Proxy(t, buckettest.Fake(t), 1)
	p := open(t, buckettest.URL(proxy.Endpoint, "x"))
	proxy.Set(map[buckettest.Fault]float64{buckettest.Busy: 1})
	err := place.WriteFile(t.Context(), p, "f", []byte("x"))
	if err == nil || !strings.Contains(err.Error(), "write s3://kumo-test/x/f: SlowDown") {
		t.Errorf("the error is %v", err)
	}
	if _, all := proxy.Seen(); all != tries+1 { // one request of Open
		t.Errorf("%d requests", all)
	}
	if err := place.WriteFile(t.Context(), p.FailFast(), "f", []byte("x")); err == nil {
		t.Error("it is written all the same")
	}
	if _, all := proxy.Seen(); all != tries+1+promptTries {
		t.Errorf("%d requests of one who asked for few", all-tries-1)
	}
}

// An interrupted read continues, but not with a replaced file.
func TestReadsGoOn(t *testing.T) {
	proxy := buckettest.Proxy(t, buckettest.Fake(t), 7)
	p := open(t, buckettest.URL(proxy.Endpoint, "x"))
	data := placetest.RandomBytes(1, 1<<20)
	if err := place.WriteFile(t.Context(), p, "f", data); err != nil {
		t.Fatal(err)
	}
	proxy.Set(map[buckettest.Fault]float64{buckettest.Short: 0.7})
	for _, from := range []int64{0, 777_777} {
		r, err := p.Open(t.Context(), "f", from, -1)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, data[from:]) {
			t.Errorf("from %d on: %d bytes, %v", from, len(got), err)
		}
	}
	proxy.Set(nil)
	r, err := p.Open(t.Context(), "f", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
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
	_ = r.Close()
}

func TestAnAnswerThatWasChangedIsSeen(t *testing.T) {
	proxy := buckettest.Proxy(t, buckettest.Gateway(t), 1)
	p := open(t, buckettest.URL(proxy.Endpoint, "x"))
	p.s3().part = small
	for _, size := range []int{100_000, 2 * small} {
		proxy.Set(nil)
		if err := place.WriteFile(t.Context(), p, "f", placetest.RandomBytes(1, size)); err != nil {
			t.Fatal(err)
		}
		proxy.Set(map[buckettest.Fault]float64{buckettest.Wrong: 1})
		if _, err := place.ReadFile(t.Context(), p, "f"); !errors.Is(err, errChanged) {
			t.Errorf("%d bytes: the error is %v", size, err)
		}
	}
}

func TestADigestIsKept(t *testing.T) {
	p := open(t, buckettest.URL(buckettest.Gateway(t), "x"))
	p.s3().part = small
	for _, size := range []int{10, small + 1} {
		data := placetest.RandomBytes(1, size)
		if err := place.WriteFile(t.Context(), p, "f", data); err != nil {
			t.Fatal(err)
		}
		if err := p.Rename(t.Context(), "f", "with space+plus/ü"); err != nil {
			t.Fatal(err)
		}
		key := "x/with space+plus/ü"
		head, err := p.s3().HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &p.s3().bucket, Key: &key})
		if sum := sha256.Sum256(data); err != nil || head.Metadata[digestKey] != hex.EncodeToString(sum[:]) {
			t.Errorf("%v %v", head, err)
		}
		if _, err := p.Stat(t.Context(), "f"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the old name: %v", err)
		}
	}
}

// An object that is too large for one copy request is copied in parts.
func TestALargeFileIsRenamed(t *testing.T) {
	p := open(t, buckettest.URL(buckettest.Gateway(t), "x"))
	p.s3().copyLimit = small
	data := placetest.RandomBytes(1, 2*small+5)
	if err := place.WriteFile(t.Context(), p, "f", data); err != nil {
		t.Fatal(err)
	}
	if err := p.Rename(t.Context(), "f", "g"); err != nil {
		t.Fatal(err)
	}
	if got, err := place.ReadFile(t.Context(), p, "g"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes: %v", len(got), err)
	}
}

// Interrupted uploads are removed with their folder.
func TestRemoveEndsUploads(t *testing.T) {
	p := open(t, buckettest.URL(buckettest.Gateway(t), "x"))
	for _, key := range []string{"x/d/f", "x/d", "x/dd"} {
		_, err := p.s3().CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &p.s3().bucket, Key: &key})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Remove(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	var left []string
	err := p.s3().uploads(t.Context(), "x/", func(u types.MultipartUpload) { left = append(left, *u.Key) })
	if err != nil || len(left) != 1 || left[0] != "x/dd" {
		t.Errorf("left are %v: %v", left, err)
	}
}
