package warc

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"kumo/internal/state/store/storetest"

	"github.com/klauspost/compress/zstd"
)

// TestPackers packs blocks of all kinds and sizes, and unpacks them with other implementations.
func TestPackers(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var blocks [][]byte
	for _, size := range []int{0, 1, 100, maxJoined - 1, maxJoined, maxJoined + 1, 70_000, 5 << 20} {
		blocks = append(blocks, randomBytes(rnd, size), words(rnd, size), append(words(rnd, size/2),
			randomBytes(rnd, size/2)...))
	}
	for name, unpack := range map[string]func(*testing.T, []byte) []byte{"gzip": gunzip, "zstd": unzstd, "none": nil} {
		t.Run(name, func(t *testing.T) {
			p := packers[name]()
			for _, block := range blocks {
				checkPack(t, p, block, false, unpack)
				checkPack(t, p, block, true, unpack)
			}
		})
	}
}

func checkPack(t *testing.T, p packer, block []byte, longText bool, unpack func(*testing.T, []byte) []byte) {
	t.Helper()
	const head = "WARC/1.1\r\nWARC-Type: response\r\n\r\n"
	record, ok := bytes.CutPrefix(p.pack([]byte("before"), []byte(head), block, longText), []byte("before"))
	if !ok {
		t.Fatal("what was there before is gone")
	}
	if unpack != nil {
		record = unpack(t, record)
	}
	if want := head + string(block) + "\r\n\r\n"; string(record) != want {
		t.Fatalf("a block of %d bytes beginning with %.20q makes a record of %d bytes, want %d", len(block), block,
			len(record), len(want))
	}
}

// gunzip unpacks b, which must be exactly one member.
func gunzip(t *testing.T, b []byte) []byte {
	t.Helper()
	src := bytes.NewReader(b)
	z, err := gzip.NewReader(src)
	if err != nil {
		t.Fatal(err)
	}
	z.Multistream(false)
	text, err := io.ReadAll(z)
	if err != nil || src.Len() > 0 {
		t.Fatalf("%v, %d bytes left over", err, src.Len())
	}
	return text
}

func unzstd(t *testing.T, b []byte) []byte {
	t.Helper()
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	text, err := z.DecodeAll(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func randomBytes(rnd *rand.Rand, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

func words(rnd *rand.Rand, size int) []byte {
	var b bytes.Buffer
	for b.Len() < size {
		b.WriteString([]string{"crawl ", "the ", "of ", "page ", "link\n", "<p>", "archive ", "蜘蛛"}[rnd.IntN(8)])
	}
	return b.Bytes()[:size]
}

func TestIsText(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	const size = 9000
	for _, c := range []struct {
		name  string
		block []byte
		want  bool
	}{
		{"text", words(rnd, size), true},
		{"HTML", bigRecord("identity").Response.Raw, true},
		{"Japanese", []byte(strings.Repeat("日本語の文章は、かなと漢字でできています。", size/60)), true},
		{"zeros", make([]byte, size), true},
		{"noise", randomBytes(rnd, size), false},
		{"a gzipped page", bigRecord("gzip").Response.Raw, false},
	} {
		if got := isText(c.block); got != c.want {
			t.Errorf("%s of %d bytes: %v", c.name, len(c.block), got)
		}
	}
}

// TestBodiesThatCameCompressedCostNoRoom limits the size of a page's records beyond its body.
func TestBodiesThatCameCompressedCostNoRoom(t *testing.T) {
	for _, compression := range []string{"gzip", "zstd"} {
		s := openTest(t, t.TempDir(), func(c *Config) { c.Compression = compression })
		put(t, s, storetest.Record(1)) // begins the file
		rec := bigRecord("gzip")
		before := s.cur.records.Len()
		put(t, s, rec)
		if more := s.cur.records.Len() - before - int64(len(rec.Response.Payload)); more > 2200 {
			t.Errorf("%s: %d bytes more than the body's %d", compression, more, len(rec.Response.Payload))
		}
		closeTest(t, s)
	}
}

// TestVisitAllocatesItsID tests that nothing else is allocated.
func TestVisitAllocatesItsID(t *testing.T) {
	for compression := range packers {
		s, err := Open(devNull{}, Config{Dir: t.TempDir(), Compression: compression}, nil)
		if err != nil {
			t.Fatal(err)
		}
		d, rec := s.drafts.get(), bigRecord("gzip")
		visit := func() {
			d.out, d.line = d.out[:0], d.line[:0]
			d.visit(rec)
			if _, _, err := s.append(d); err != nil {
				t.Fatal(err)
			}
		}
		visit()
		if n := testing.AllocsPerRun(200, visit); n > 1 {
			t.Errorf("%s: %v allocations", compression, n)
		}
	}
}
