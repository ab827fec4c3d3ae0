package away

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/base/vfs"
)

var zeros = strings.Repeat("0", 64)

func TestAManifestIsReadAsItWasWritten(t *testing.T) {
	m := NewManifest()
	m.Put(Entry{Name: "warc/b.warc.gz", Size: 7, SHA256: zeros, Time: time.Unix(1, 0).UTC()})
	m.Put(Entry{Name: "a", Size: 1, SHA256: zeros})
	m.Put(Entry{Name: "a", Size: 2, SHA256: zeros})
	text := m.Encode()
	got, whole, err := Parse(append(text, `{"name":"torn`...))
	if err != nil || whole != len(text) || !slices.Equal(got.All(), m.All()) || len(m.All()) != 2 {
		t.Errorf("got %+v of %d bytes: %v", got.All(), whole, err)
	}
	for _, bad := range []string{"x", `{"name":"../x","size":1,"sha256":"` + zeros + `"}`,
		`{"name":"x","size":-1,"sha256":"` + zeros + `"}`,
		`{"name":"x","size":1,"sha256":"00"}`} {
		if _, _, err := Parse([]byte(bad + "\n")); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	e := Entry{Name: "warc/x", Size: 7, SHA256: zeros}
	f.Add(e.Line())
	f.Add([]byte(`{"name":"x"`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, whole, err := Parse(data)
		if err != nil {
			return
		}
		again, n, err := Parse(m.Encode())
		if err != nil || n != len(m.Encode()) || len(again.All()) != len(m.All()) || whole > len(data) {
			t.Errorf("%v: %d of %d files", err, len(again.All()), len(m.All()))
		}
	})
}

// A countedPlace counts requests.
type countedPlace struct {
	place.Place
	asked, bytes int64
}

func (p *countedPlace) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	p.asked++
	r, err := p.Place.Open(ctx, name, offset, length)
	if err != nil {
		return nil, err
	}
	return &countedReader{r, p}, nil
}

type countedReader struct {
	io.ReadCloser
	p *countedPlace
}

func (r *countedReader) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	r.p.bytes += int64(n)
	return n, err
}

// fixture returns a disk over an empty folder and a location with one file.
func fixture(t *testing.T, text []byte) (*Disk, *countedPlace, string) {
	t.Helper()
	at, err := file.Open(t.TempDir(), vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	p := &countedPlace{Place: at}
	there := NewManifest()
	for _, name := range []string{"warc/a.warc.gz", "pages.jsonl"} {
		if err := place.WriteFile(t.Context(), p, name, text); err != nil {
			t.Fatal(err)
		}
		there.Put(Entry{Name: name, Size: int64(len(text)), SHA256: zeros})
	}
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "warc"), 0o755),
		os.WriteFile(filepath.Join(dir, "warc", "b.warc.gz"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	return NewOverlay(t.Context(), vfs.OS, dir, p, there), p, dir
}

func TestFilesOfThePlaceAreThoseOfTheFolder(t *testing.T) {
	d, p, dir := fixture(t, []byte("0123456789"))
	name := filepath.Join(dir, "warc", "a.warc.gz")
	if names, err := d.List(filepath.Join(dir, "warc")); err != nil ||
		!slices.Equal(names, []string{"a.warc.gz", "b.warc.gz"}) {
		t.Errorf("listed %q: %v", names, err)
	}
	if size, err := d.Size(name); size != 10 || err != nil {
		t.Errorf("%d bytes: %v", size, err)
	}
	f, err := d.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(f); string(text) != "0123456789" || err != nil {
		t.Errorf("it has %q: %v", text, err)
	}
	if _, err := d.Open(filepath.Join(dir, "pages.jsonl")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that grows is taken from the place: %v", err)
	}
	if f, err := NewRemote(t.Context(), vfs.OS, dir, p, d.manifest).Open(filepath.Join(dir, "pages.jsonl")); err != nil {
		t.Error(err)
	} else if err := f.Close(); err != nil {
		t.Error(err)
	}
	if !vfs.IsOS(d) {
		t.Error("it is not over the system's disk")
	}
}

func TestARecordIsReadByARangeAndAFileByFew(t *testing.T) {
	text := make([]byte, 8<<20)
	rand.NewChaCha8([32]byte{}).Read(text)
	d, p, dir := fixture(t, text)
	f, err := d.OpenAt(filepath.Join(dir, "warc", "a.warc.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 3000)
	if n, err := f.ReadAt(b, 5<<20); n != len(b) || err != nil || !bytes.Equal(b, text[5<<20:5<<20+3000]) {
		t.Fatalf("%d bytes: %v", n, err)
	}
	if p.asked != 1 || p.bytes > minRange {
		t.Errorf("for a record it has asked %d times, for %d bytes", p.asked, p.bytes)
	}
	all, err := io.ReadAll(io.NewSectionReader(f, 0, int64(len(text))))
	if err != nil || !bytes.Equal(all, text) {
		t.Fatalf("%d bytes: %v", len(all), err)
	}
	if p.asked > 8 {
		t.Errorf("for all it has asked %d times", p.asked)
	}
	if n, err := f.ReadAt(b, int64(len(text))-10); n != 10 || !errors.Is(err, io.EOF) {
		t.Errorf("at the end %d bytes: %v", n, err)
	}
}

func TestAFileThatIsCutSaysSo(t *testing.T) {
	d, p, dir := fixture(t, []byte("0123456789"))
	f, err := d.OpenAt(filepath.Join(dir, "warc", "a.warc.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := place.WriteFile(t.Context(), p, "warc/a.warc.gz", []byte("0123")); err != nil {
		t.Fatal(err)
	}
	n, err := f.ReadAt(make([]byte, 10), 0)
	if n != 4 || !errors.Is(err, io.ErrUnexpectedEOF) ||
		!strings.Contains(err.Error(), p.URL()+"/warc/a.warc.gz at byte 4") {
		t.Errorf("%d bytes: %v", n, err)
	}
}
