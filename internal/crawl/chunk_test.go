package crawl

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"kumo/internal/item"
	"kumo/internal/page"
	"kumo/internal/seen"
	"kumo/internal/weburl"
)

func testPacker(t testing.TB) *chunkWriter {
	t.Helper()
	zip, err := newZip()
	if err != nil {
		t.Fatal(err)
	}
	return &chunkWriter{sizes: sizes{sheetBytes, chunkBytes}, zip: zip, now: time.Unix(1_900_000_000, 0).UTC()}
}

func testUnpacker(t testing.TB) *unpacker {
	t.Helper()
	u, err := newUnpacker()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.zip.Close)
	return u
}

func randomText(dice *rand.Rand, n int) string {
	return strings.Repeat(string(rune('a'+dice.IntN(26))), dice.IntN(n)) + fmt.Sprint(dice.IntN(100))
}

// randomParcel is a parcel, and how a packer writes it.
func randomParcel(dice *rand.Rand, pack *chunkWriter) *decodedChunk {
	p := &decodedChunk{}
	for range dice.IntN(20) {
		host := fmt.Sprintf("h%d.example:8080", dice.IntN(100))
		c := hostTiming{time.Duration(dice.IntN(1e6)) * time.Millisecond, time.Duration(dice.IntN(1e6)) * time.Millisecond}
		if dice.IntN(2) == 0 {
			a := arrived{host: host, clock: c}
			pack.waiting(host, c)
			for range dice.IntN(10) {
				it := item.Item{URL: "http://" + host + "/" + randomText(dice, 300), From: randomText(dice, 5),
					Seed: randomText(dice, 5), Path: randomText(dice, 50),
					Depth: dice.Int32N(9), Kind: page.Kind(dice.IntN(5)), Redirects: uint8(dice.IntN(3)), Tries: uint8(dice.IntN(3)),
					Root: dice.IntN(2) == 0, Told: dice.IntN(2) == 0, Recrawl: dice.IntN(2) == 0, Late: dice.IntN(2) == 0}
				pack.item(&it)
				a.items = append(a.items, it)
			}
			p.waiting = append(p.waiting, a)
			continue
		}
		l := learnt{host: host, clock: c}
		origin := []string{"http://", "https://a@", "https://"}[dice.IntN(3)] + host
		pack.known(origin, c)
		for range dice.IntN(10) {
			rest := "/" + randomText(dice, 300)
			e := seen.Entry{URL: origin + rest, State: seen.State(dice.IntN(3)), Depth: dice.Int32N(9),
				First: pack.now.Add(-time.Duration(dice.IntN(1e4)) * time.Minute)}
			if dice.IntN(2) == 0 {
				e.Meta = seen.Meta{Fetched: pack.now.Add(-time.Hour), Status: 200, ETag: "e",
					Digest: page.Digest{byte(dice.IntN(256))}}
			}
			pack.entry(rest, &e)
			l.entries = append(l.entries, e)
		}
		p.known = append(p.known, l)
	}
	return p
}

func TestChunksAreReadAsWritten(t *testing.T) {
	u, pack := testUnpacker(t), testPacker(t)
	for seed := range uint64(500) {
		dice := rand.New(rand.NewPCG(seed, 0))
		want := randomParcel(dice, pack)
		got, err := u.read(pack.chunk())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !reflect.DeepEqual(got.waiting, want.waiting) || !reflect.DeepEqual(got.known, want.known) {
			t.Fatalf("seed %d:\n%+v became\n%+v", seed, want, got)
		}
	}
}

// A chunk that is changed, or cut off, is refused or still one; it never does harm.
func TestDamagedChunksAreRefused(t *testing.T) {
	u, pack := testUnpacker(t), testPacker(t)
	dice := rand.New(rand.NewPCG(1, 2))
	randomParcel(dice, pack)
	data := pack.chunk()
	for i := range data {
		if _, err := u.read(data[:i]); err == nil && i > 1 {
			t.Errorf("cut at %d of %d: no error", i, len(data))
		}
	}
	for _, text := range []string{"\x01", "\x03", "?", "\x01\x05abc"} {
		if _, err := u.read([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// What unfolds to more than a chunk may is refused before it is there: many long URLs that share nearly all, and a
// sheet of zeros.
func TestAChunkThatUnfoldsIsRefused(t *testing.T) {
	u, pack := testUnpacker(t), testPacker(t)
	long := "https://h/" + strings.Repeat("x", 60_000)
	pack.waiting("h", hostTiming{})
	for range 2 * chunkWeight / len(long) {
		pack.item(&item.Item{URL: long})
	}
	if _, err := u.read(pack.chunk()); err == nil {
		t.Error("many long URLs: no error")
	}
	pack.sheet.Writer = make([]byte, 2*maxSheet)
	if _, err := u.read(pack.chunk()); err == nil {
		t.Error("a large sheet: no error")
	}
	pack.waiting("h", hostTiming{})
	pack.item(&item.Item{URL: "https://elsewhere/"})
	if _, err := u.read(pack.chunk()); err == nil {
		t.Error("another host's URL: no error")
	}
	pack.waiting("h", hostTiming{})
	pack.item(&item.Item{URL: long + strings.Repeat("x", 1<<16)})
	if _, err := u.read(pack.chunk()); err == nil {
		t.Error("a URL without end: no error")
	}
}

func FuzzChunk(f *testing.F) {
	pack := testPacker(f)
	for seed := range uint64(5) {
		randomParcel(rand.New(rand.NewPCG(seed, 0)), pack)
		pack.endGroup()
		f.Add(append([]byte(nil), pack.sheet.Writer...))
		pack.chunk()
	}
	u := testUnpacker(f)
	f.Fuzz(func(t *testing.T, sheet []byte) {
		if len(sheet) == 0 {
			return
		}
		pack.chunk()
		pack.sheet.Writer = append(pack.sheet.Writer, sheet...)
		p, err := u.read(pack.chunk())
		u.read(sheet) // nor as what it is
		if err != nil {
			return
		}
		for _, a := range p.waiting {
			pack.waiting(a.host, a.clock)
			for i := range a.items {
				pack.item(&a.items[i])
			}
		}
		again, err := u.read(pack.chunk())
		if err != nil || !reflect.DeepEqual(again.waiting, p.waiting) {
			t.Errorf("%+v became %+v, %v", p.waiting, again, err)
		}
	})
}

// Long URLs that are much alike are short in a chunk. What it unfolds to stays small enough for who reads it all the
// same.
func TestChunksOfLongURLsAreRead(t *testing.T) {
	u, pack := testUnpacker(t), testPacker(t)
	long := strings.Repeat("a", weburl.MaxLength-100)
	all, read := 5000, 0
	take := func() {
		p, err := u.read(pack.chunk())
		if err != nil {
			t.Fatalf("behind %d URLs: %v", read, err)
		}
		for i := range p.waiting {
			read += len(p.waiting[i].items)
		}
	}
	for i := range all {
		if len(pack.group) == 0 {
			pack.waiting("h.test", hostTiming{})
		}
		pack.item(&item.Item{URL: fmt.Sprint("http://h.test/", long, i), From: "http://h.test/" + long})
		if pack.full() && pack.endSheet() {
			take()
		}
	}
	if take(); read != all {
		t.Errorf("%d of %d URLs are read", read, all)
	}
}
