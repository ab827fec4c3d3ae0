package transfer

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/cookies"
	"kumo/internal/state/seen"
)

func testWriter(t testing.TB) *ChunkWriter {
	t.Helper()
	w, err := NewChunkWriter(time.Unix(1_900_000_000, 0).UTC(), Sizes{Block: BlockBytes, Chunk: ChunkBytes})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func testUnpacker(t testing.TB) *ChunkReader {
	t.Helper()
	u, err := NewChunkReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.zip.Close)
	return u
}

func randomText(dice *rand.Rand, n int) string {
	return strings.Repeat(string(rune('a'+dice.IntN(26))), dice.IntN(n)) + fmt.Sprint(dice.IntN(100))
}

// randomChunk returns a chunk, and writes it with a writer.
func randomChunk(dice *rand.Rand, pack *ChunkWriter) *Chunk {
	p := &Chunk{}
	for range dice.IntN(20) {
		host := fmt.Sprintf("h%d.example:8080", dice.IntN(100))
		c := HostTiming{time.Duration(dice.IntN(1e6)) * time.Millisecond, time.Duration(dice.IntN(1e6)) * time.Millisecond}
		if dice.IntN(2) == 0 {
			a := HostQueue{Host: host, Timing: c}
			pack.BeginPending(host, c)
			for range dice.IntN(10) {
				it := item.Item{URL: "http://" + host + "/" + randomText(dice, 300), From: randomText(dice, 5),
					Seed: randomText(dice, 5), Path: randomText(dice, 50),
					Depth: dice.Int32N(9), Kind: page.Kind(dice.IntN(5)), Redirects: uint8(dice.IntN(3)), Tries: uint8(dice.IntN(3)),
					ScopeSeed: dice.IntN(2) == 0, Reported: dice.IntN(2) == 0, Recrawl: dice.IntN(2) == 0,
					QueueLast: dice.IntN(2) == 0}
				pack.Item(&it)
				a.Items = append(a.Items, it)
			}
			p.Pending = append(p.Pending, a)
			continue
		}
		l := HostKnown{Host: host, Timing: c}
		origin := []string{"http://", "https://a@", "https://"}[dice.IntN(3)] + host
		pack.BeginKnown(origin, c)
		for range dice.IntN(10) {
			rest := "/" + randomText(dice, 300)
			e := seen.Entry{URL: origin + rest, State: seen.State(dice.IntN(3)), Depth: dice.Int32N(9),
				First: pack.Now.Add(-time.Duration(dice.IntN(1e4)) * time.Minute)}
			if dice.IntN(2) == 0 {
				e.Meta = seen.Meta{Fetched: pack.Now.Add(-time.Hour), Status: 200, ETag: "e",
					Digest: page.Digest{byte(dice.IntN(256))}}
			}
			pack.Entry(rest, &e)
			l.Entries = append(l.Entries, e)
		}
		p.Known = append(p.Known, l)
	}
	return p
}

func TestChunksAreReadAsWritten(t *testing.T) {
	u, pack := testUnpacker(t), testWriter(t)
	for seed := range uint64(500) {
		dice := rand.New(rand.NewPCG(seed, 0))
		want := randomChunk(dice, pack)
		got, err := u.Read(pack.Chunk())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !reflect.DeepEqual(got.Pending, want.Pending) || !reflect.DeepEqual(got.Known, want.Known) {
			t.Fatalf("seed %d:\n%+v became\n%+v", seed, want, got)
		}
	}
}

// Cookies are sent with their host. Those for another host are rejected.
func TestCookiesOfAHost(t *testing.T) {
	jar := cookies.NewJar(cookies.Config{})
	at := cookies.Target{Secure: true, Host: "w.a.example", Path: "/p/q"}
	jar.Store([]string{"n=1; Max-Age=100", "wide=2; Domain=a.example; Path=/; Secure"}, at, false, time.Unix(1e9, 0))
	want := jar.AppendForHost(nil, "w.a.example")
	for host, ok := range map[string]bool{"w.a.example:8443": true, "b.example": false} {
		w := testWriter(t)
		w.Cookies(host, want)
		p, err := testUnpacker(t).Read(w.Chunk())
		if (err == nil) != ok {
			t.Fatalf("%s: %v", host, err)
		}
		if !ok {
			continue
		}
		to := cookies.NewJar(cookies.Config{})
		for _, c := range p.Cookies {
			to.Import(c)
		}
		now := time.Unix(1e9+1, 0)
		if got, want := fmt.Sprint(to.Append(nil, at, now)), fmt.Sprint(jar.Append(nil, at, now)); to.Len() != 2 ||
			len(got) != len(want) {
			t.Errorf("came: %s, want %s", got, want)
		}
	}
}

func TestDamagedChunksAreRefused(t *testing.T) {
	u, pack := testUnpacker(t), testWriter(t)
	dice := rand.New(rand.NewPCG(1, 2))
	randomChunk(dice, pack)
	data := pack.Chunk()
	for i := range data {
		if _, err := u.Read(data[:i]); err == nil && i > 1 {
			t.Errorf("cut at %d of %d: no error", i, len(data))
		}
	}
	for _, text := range []string{"\x01", "\x03", "?", "\x01\x05abc"} {
		if _, err := u.Read([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// A chunk whose decoded size exceeds the limit is rejected before it is decoded: many long URLs with a common prefix,
// and a block of zeros.
func TestAChunkThatUnfoldsIsRefused(t *testing.T) {
	u, pack := testUnpacker(t), testWriter(t)
	long := "https://h/" + strings.Repeat("x", 60_000)
	pack.BeginPending("h", HostTiming{})
	for range 2 * maxChunkMemory / len(long) {
		pack.Item(&item.Item{URL: long})
	}
	if _, err := u.Read(pack.Chunk()); err == nil {
		t.Error("many long URLs: no error")
	}
	pack.block.Writer = make([]byte, 2*maxBlock)
	if _, err := u.Read(pack.Chunk()); err == nil {
		t.Error("a large block: no error")
	}
	pack.BeginPending("h", HostTiming{})
	pack.Item(&item.Item{URL: "https://elsewhere/"})
	if _, err := u.Read(pack.Chunk()); err == nil {
		t.Error("another host's URL: no error")
	}
	pack.BeginPending("h", HostTiming{})
	pack.Item(&item.Item{URL: long + strings.Repeat("x", 1<<16)})
	if _, err := u.Read(pack.Chunk()); err == nil {
		t.Error("a URL without end: no error")
	}
}

func FuzzChunk(f *testing.F) {
	pack := testWriter(f)
	for seed := range uint64(5) {
		randomChunk(rand.New(rand.NewPCG(seed, 0)), pack)
		pack.endGroup()
		f.Add(append([]byte(nil), pack.block.Writer...))
		pack.Chunk()
	}
	u := testUnpacker(f)
	f.Fuzz(func(t *testing.T, block []byte) {
		if len(block) == 0 {
			return
		}
		pack.Chunk()
		pack.block.Writer = append(pack.block.Writer, block...)
		p, err := u.Read(pack.Chunk())
		u.Read(block) // nor in its decoded form
		if err != nil {
			return
		}
		for _, a := range p.Pending {
			pack.BeginPending(a.Host, a.Timing)
			for i := range a.Items {
				pack.Item(&a.Items[i])
			}
		}
		again, err := u.Read(pack.Chunk())
		if err != nil || !reflect.DeepEqual(again.Pending, p.Pending) {
			t.Errorf("%+v became %+v, %v", p.Pending, again, err)
		}
	})
}

// Long similar URLs compress well. The decoded size must still be within the reader's limit.
func TestChunksOfLongURLsAreRead(t *testing.T) {
	u, pack := testUnpacker(t), testWriter(t)
	long := strings.Repeat("a", weburl.MaxLength-100)
	all, read := 5000, 0
	take := func() {
		p, err := u.Read(pack.Chunk())
		if err != nil {
			t.Fatalf("behind %d URLs: %v", read, err)
		}
		for i := range p.Pending {
			read += len(p.Pending[i].Items)
		}
	}
	for i := range all {
		if len(pack.group) == 0 {
			pack.BeginPending("h.test", HostTiming{})
		}
		pack.Item(&item.Item{URL: fmt.Sprint("http://h.test/", long, i), From: "http://h.test/" + long})
		if pack.full() && pack.endBlock() {
			take()
		}
	}
	if take(); read != all {
		t.Errorf("%d of %d URLs are read", read, all)
	}
}
