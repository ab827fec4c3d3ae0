package placetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"testing"

	"kumo/internal/archive/place"
)

// RunUploads tests a location's uploads. open is called once for each test and returns an empty location; sizes are
// file sizes that the location handles differently.
func RunUploads(t *testing.T, open func(t *testing.T) place.Place, sizes ...int) {
	for name, test := range map[string]func(*testing.T, place.Place, []int){
		"an uploaded file":                         uploads,
		"a wrong digest":                           uploadsOther,
		"a short file":                             uploadsShort,
		"an interrupted upload continues":          uploadsGoOn,
		"a stopped upload does not appear":         uploadsStopped,
		"another file after an interrupted upload": uploadsAnother,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t), sizes) })
	}
}

// RandomBytes returns pseudorandom bytes from a seed.
func RandomBytes(seed uint64, size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b) // never fails
	return b
}

func upload(t *testing.T, p place.Place, name string, data []byte, src io.ReaderAt) error {
	t.Helper()
	if src == nil {
		src = bytes.NewReader(data)
	}
	return place.Upload(t.Context(), p, name, src, int64(len(data)), sha256.Sum256(data))
}

// checkFile checks the data and all metadata of a file.
func checkFile(t *testing.T, p place.Place, name string, data []byte) {
	t.Helper()
	got, err := place.ReadFile(t.Context(), p, name)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%s: %d bytes are there, %d were uploaded, or others: %v", name, len(got), len(data), err)
	}
	if info, err := p.Stat(t.Context(), name); err != nil || info.Size != int64(len(data)) {
		t.Errorf("%s: %+v %v", name, info, err)
	}
}

func absent(t *testing.T, p place.Place, name string) {
	t.Helper()
	if info, err := p.Stat(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: there is %+v %v", name, info, err)
	}
}

func uploads(t *testing.T, p place.Place, sizes []int) {
	for _, size := range append(sizes, 0, 1) {
		for _, seed := range []uint64{1, 1, 2} { // first, again, and another file
			data := RandomBytes(seed, size)
			if err := upload(t, p, "d/f", data, nil); err != nil {
				t.Fatalf("%d bytes: %v", size, err)
			}
			checkFile(t, p, "d/f", data)
		}
	}
	if all := listed(t, p, "d"); len(all) != 1 {
		t.Errorf("there is %v", all)
	}
}

func uploadsOther(t *testing.T, p place.Place, sizes []int) {
	put(t, p, "old", "old")
	for _, size := range sizes {
		for _, name := range []string{"old", "new"} {
			data := RandomBytes(3, size)
			err := place.Upload(t.Context(), p, name, bytes.NewReader(data), int64(size), sha256.Sum256([]byte("others")))
			if !errors.Is(err, place.ErrDigest) {
				t.Errorf("%d bytes: the error is %v", size, err)
			}
		}
		absent(t, p, "new")
	}
	if got := get(t, p, "old"); got != "old" {
		t.Errorf("what was there is %d bytes", len(got))
	}
}

func uploadsShort(t *testing.T, p place.Place, sizes []int) {
	for _, size := range sizes {
		data := RandomBytes(4, size)
		err := upload(t, p, "f", data, bytes.NewReader(data[:size/2]))
		if err == nil {
			t.Errorf("half of %d bytes is taken for a file", size)
		}
		absent(t, p, "f")
	}
}

// A failingReader fails at an offset.
type failingReader struct {
	io.ReaderAt
	at int64
}

var errBroken = errors.New("the disk is broken")

func (b *failingReader) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.at {
		return 0, errBroken
	}
	return b.ReaderAt.ReadAt(p, off)
}

func uploadsGoOn(t *testing.T, p place.Place, sizes []int) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, size := range sizes {
		data := RandomBytes(5, size)
		for range 3 {
			err := upload(t, p, "f", data, &failingReader{bytes.NewReader(data), rng.Int64N(int64(size))})
			if !errors.Is(err, errBroken) {
				t.Errorf("%d bytes: the error is %v", size, err)
			}
			absent(t, p, "f")
		}
		if err := upload(t, p, "f", data, nil); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		checkFile(t, p, "f", data)
		if err := p.Remove(t.Context(), "f"); err != nil {
			t.Fatal(err)
		}
	}
}

// A cancelingReader cancels its context at an offset.
type cancelingReader struct {
	io.ReaderAt
	at     int64
	cancel context.CancelFunc
}

func (s *cancelingReader) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > s.at {
		s.cancel()
	}
	return s.ReaderAt.ReadAt(p, off)
}

func uploadsStopped(t *testing.T, p place.Place, sizes []int) {
	for _, size := range sizes {
		data := RandomBytes(6, size)
		ctx, cancel := context.WithCancel(t.Context())
		err := place.Upload(ctx, p, "f", &cancelingReader{bytes.NewReader(data), int64(size / 2), cancel}, int64(size),
			sha256.Sum256(data))
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%d bytes: the error is %v", size, err)
		}
		absent(t, p, "f")
	}
}

func uploadsAnother(t *testing.T, p place.Place, sizes []int) {
	for _, size := range sizes {
		first, second := RandomBytes(7, size), RandomBytes(8, size)
		copy(second, first[:size/2]) // both begin with the same bytes
		if err := upload(t, p, "f", first, &failingReader{bytes.NewReader(first), int64(size - 1)}); !errors.Is(
			err,
			errBroken,
		) {
			t.Errorf("%d bytes: the error is %v", size, err)
		}
		if err := upload(t, p, "f", second, nil); err != nil {
			t.Errorf("%d bytes: %v", size, err)
			continue
		}
		checkFile(t, p, "f", second)
		if err := upload(t, p, "f", second, nil); err != nil { // it may exist already
			t.Error(err)
		}
		checkFile(t, p, "f", second)
		if err := p.Remove(t.Context(), "f"); err != nil {
			t.Fatal(err)
		}
	}
}
