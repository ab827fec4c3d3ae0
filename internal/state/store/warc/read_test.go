package warc

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"kumo/internal/state/store/storetest"
)

// written returns a file with a few visits, one of them odd.
func written(t *testing.T, compression string) (name string, data []byte) {
	t.Helper()
	dir := t.TempDir()
	s := openTest(t, dir, func(c *Config) { c.Compression = compression })
	for n := range 8 {
		put(t, s, storetest.Record(n))
	}
	for _, rec := range odd() {
		put(t, s, rec)
	}
	closeTest(t, s)
	names, err := filepath.Glob(filepath.Join(dir, "warc", "*.warc.*"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	if data, err = os.ReadFile(names[0]); err != nil {
		t.Fatal(err)
	}
	return names[0], data
}

// readAll reads all readable records, and returns the offsets of records and of damage.
func readAll(t *testing.T, name string, data []byte) (places []int64, failed []error) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(data), int64(len(data)), name)
	if err != nil {
		t.Fatal(err)
	}
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return places, failed
		}
		if err != nil {
			failed = append(failed, err)
		}
		if rec == nil {
			r.Skip()
			continue
		}
		places = append(places, rec.Offset)
	}
}

func TestReaderReadsWhatTheStoreWrites(t *testing.T) {
	for _, compression := range []string{"gzip", "zstd"} {
		t.Run(compression, func(t *testing.T) {
			name, data := written(t, compression)
			places, failed := readAll(t, name, data)
			if len(places) < 20 || len(failed) > 0 {
				t.Fatalf("%d records, and %v", len(places), failed)
			}
			// A hole destroys only the records that it touches.
			holed := bytes.Clone(data)
			clear(holed[places[5]+12 : places[5]+40])
			rest, failed := readAll(t, name, holed)
			if len(rest) != len(places)-1 || len(failed) != 1 {
				t.Errorf("with a hole: %d records of %d, and %v", len(rest), len(places), failed)
			}
			// Wherever the file ends, the last record is torn or missing.
			for _, cut := range []int64{places[3] + 1, places[3] + 9, places[4] - 1} {
				rest, failed = readAll(t, name, data[:cut])
				if len(rest) != 3 || len(failed) != 1 || !errors.Is(failed[0], ErrTorn) {
					t.Errorf("cut at %d: %d records, and %v", cut, len(rest), failed)
				}
			}
		})
	}
}

func TestIndexLinesComeBack(t *testing.T) {
	rec := storetest.Record(1)
	// the first record may be as long as everything before
	line := append(appendLine(nil, rec, (&draft{}).payloadDigest(rec), 77), `,"offset":"77","filename":"a.warc.gz"}`...)
	x, err := ParseIndexLine(line)
	if err != nil || x.URL != rec.URL || x.Length != 77 || x.Offset != 77 || x.File != "a.warc.gz" ||
		x.Status != rec.Response.Status {
		t.Errorf("%+v %v", x, err)
	}
	for _, bad := range []string{"", "a", "a)/ 20260101000000 {}", string(line[1:]), string(line[:len(line)-1])} {
		if _, err := ParseIndexLine([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a line", bad)
		}
	}
}

// A head with control characters, as servers send them, can be read.
func TestAnAnswerWithControlCharactersIsRead(t *testing.T) {
	rec := Record{Fields: map[string]string{"WARC-Type": "response"},
		Block: []byte("HTTP/1.1 200 OK\r\nX-Odd: a\x01\x7f\r\nContent-Type: text/html\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n2\r\n\x01k\r\n0\r\n\r\n")}
	resp, err := rec.Response()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); kind != "text/html" {
		t.Errorf("its type is %q", kind)
	}
	if got, want := rec.BodyDigest(), sha1.Sum([]byte("\x01k")); got != want {
		t.Errorf("its body's digest is %x, want %x", got, want)
	}
}

// TestRecordsOfAllLengths reads records that are shorter and longer than the reader's buffer, in order and in random
// order, and compares them with those of a skimmer, which decodes all as streams.
func TestRecordsOfAllLengths(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	s := openTest(t, dir, func(*Config) {})
	for n, length := range []int{0, 100, ahead / 2, ahead - 2000, ahead, ahead + 100, 40, 3 * ahead, 7} {
		body := make([]byte, length)
		for i := range body {
			body[i] = byte(rnd.Uint32()) // does not compress
		}
		put(t, s, answer(fmt.Sprintf("http://a.example/%d", n), "HTTP/1.1 200 OK\r\n\r\n", string(body), string(body)))
		put(t, s, answer(fmt.Sprintf("http://a.example/%d/zeros", n), "HTTP/1.1 200 OK\r\n\r\n",
			string(make([]byte, 10*length)), string(make([]byte, 10*length))))
	}
	closeTest(t, s)
	names, err := filepath.Glob(filepath.Join(dir, "warc", "*.warc.gz"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	open := func(f func(io.ReaderAt, int64, string) (*Reader, error)) *Reader {
		r, err := f(bytes.NewReader(data), int64(len(data)), names[0])
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r, skimmer := open(NewReader), open(NewSkimmer)
	same := func() (int64, bool) {
		t.Helper()
		got, err := r.Next()
		want, wantErr := skimmer.Next()
		if !errors.Is(err, wantErr) || !sameRecord(got, want) {
			t.Fatalf("record %v, %v, by stream %v, %v", got, err, want, wantErr)
		}
		if got == nil {
			return 0, false
		}
		return got.Offset, true
	}
	var offsets []int64
	for at, more := same(); more; at, more = same() {
		offsets = append(offsets, at)
	}
	if len(offsets) < 50 {
		t.Fatal(len(offsets), "records")
	}
	for range 100 {
		at := offsets[rnd.IntN(len(offsets))]
		r.SeekTo(at)
		skimmer.SeekTo(at)
		same()
	}
}

func sameRecord(a, b *Record) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Offset == b.Offset && a.Length == b.Length && maps.Equal(a.Fields, b.Fields) && bytes.Equal(a.Block, b.Block)
}
