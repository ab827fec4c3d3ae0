package item

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"kumo/internal/base/page"
)

const host = "www.example.com:8080"

func someText(dice *rand.Rand, begin string) string {
	return begin[:dice.IntN(len(begin)+1)] + strings.Repeat(string(rune('a'+dice.IntN(26))), dice.IntN(200))
}

func someItem(dice *rand.Rand) Item {
	is := func() bool { return dice.IntN(2) == 0 }
	root := []string{"https://", "http://", "mailto:"}[dice.IntN(3)] + []string{host, "elsewhere.test"}[dice.IntN(2)] + "/"
	it := Item{URL: root + someText(dice, "/articles/2026/"), Depth: dice.Int32() - 1<<30, Kind: page.Kind(dice.IntN(9)),
		ScopeSeed: is(), QueueLast: is(), Reported: is(), Recrawl: is(), Refetch: is(), Deferred: is()}
	it.From, it.Seed, it.Path = someText(dice, it.URL), someText(dice, it.URL), someText(dice, "LLLRE")
	if is() {
		it.Vain = uint8(dice.IntN(256))
	}
	if it.Refetch && is() {
		it.Refetches = uint8(dice.IntN(256))
	}
	if is() {
		it.Redirects, it.Tries = uint8(dice.IntN(256)), uint8(dice.IntN(3))
	}
	if is() {
		it.Robots = someText(dice, root)
	}
	if is() {
		it.Lift = int8(dice.IntN(256) - 128)
	}
	return it
}

func TestItemsAreReadAsWritten(t *testing.T) {
	for _, share := range []int{0, 1, 4096} {
		for seed := range uint64(300) {
			dice := rand.New(rand.NewPCG(seed, 0))
			var frames []byte
			var items []Item
			var hosts []string
			for range dice.IntN(20) {
				it, at := someItem(dice), []string{"", host}[dice.IntN(2)]
				frames = Append(frames, at, &it)
				items, hosts = append(items, it), append(hosts, at)
			}
			r := Reader{Share: share}
			var got []Item
			for rest := frames; len(rest) > 0; {
				var it Item
				var err error
				if it, rest, err = r.Read(rest, hosts[len(got)]); err != nil {
					t.Fatalf("seed %d, share %d: %v", seed, share, err)
				}
				got = append(got, it)
			}
			if fmt.Sprint(got) != fmt.Sprint(items) { // only now: shared strings must stay valid
				t.Fatalf("seed %d, share %d:\n%+v became\n%+v", seed, share, items, got)
			}
		}
	}
}

func TestLongItemsAreReadAsWritten(t *testing.T) {
	for _, n := range []int{100, 127, 128, 1<<14 - 9, 1 << 14, 1 << 16} {
		it := Item{URL: "https://h/" + strings.Repeat("x", n)}
		frame := append(Append([]byte("before"), "", &it), "behind"...)
		var r Reader
		if got, rest, err := r.Read(frame[len("before"):], ""); err != nil || got != it || string(rest) != "behind" {
			t.Errorf("%d bytes became %d, %q behind them, %v", len(it.URL), len(got.URL), rest, err)
		}
	}
}

// Items written before lifts existed end where the lift would be.
func TestAnItemWithoutALiftHasNone(t *testing.T) {
	dice := rand.New(rand.NewPCG(4, 0))
	for range 50 {
		it := someItem(dice)
		it.Lift, it.Refetch, it.Refetches, it.Vain, it.Deferred = 5, false, 0, 0, false
		body := AppendBody(nil, host, &it)
		it.Lift = 0
		var r Reader
		if got, err := r.ReadBody(body[:len(body)-1], host); err != nil || got != it {
			t.Errorf("%+v became %+v, %v", it, got, err)
		}
	}
}

func TestALiftIsFound(t *testing.T) {
	dice := rand.New(rand.NewPCG(5, 0))
	for range 200 {
		it := someItem(dice)
		if got := LiftOf(AppendBody(nil, host, &it)); got != it.Lift {
			t.Errorf("%+v: %d", it, got)
		}
	}
}

func TestAnItemThatIsCutOffIsRefused(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 0))
	for range 50 {
		it := someItem(dice)
		it.Lift, it.Refetch, it.Refetches, it.Vain, it.Deferred = 0, false, 0, 0, false
		body := AppendBody(nil, host, &it)
		frame := Append(nil, host, &it)
		if !bytes.HasSuffix(frame, body) {
			t.Fatalf("%q is in a frame %q", body, frame)
		}
		var r Reader
		for i := range body {
			if _, err := r.ReadBody(body[:i], host); !errors.Is(err, ErrDamaged) {
				t.Errorf("cut at %d of %d: %v", i, len(body), err)
			}
		}
		for i := range frame {
			if _, _, err := r.Read(frame[:i], host); !errors.Is(err, ErrDamaged) {
				t.Errorf("a frame cut at %d of %d: %v", i, len(frame), err)
			}
		}
	}
}

// Fields appended by a later version do not prevent reading the rest; another version number does.
func TestALaterItemIsRead(t *testing.T) {
	it := someItem(rand.New(rand.NewPCG(2, 0)))
	it.Lift, it.Refetch = -3, true // the last known fields
	body := append(AppendBody(nil, "", &it), "what comes later"...)
	var r Reader
	if got, err := r.ReadBody(body, ""); err != nil || got != it {
		t.Errorf("%+v became %+v, %v", it, got, err)
	}
	body[0]++
	if _, err := r.ReadBody(body, ""); !errors.Is(err, ErrVersion) {
		t.Errorf("version %d: %v", body[0], err)
	}
}

func TestHosts(t *testing.T) {
	for url, want := range map[string]string{"https://h/": "h", "http://u:p@h:81/a@b/": "h:81", "http://h": "h", "": "",
		"mailto:x": "", "http:///": ""} {
		if it := (Item{URL: url}); it.Host() != want {
			t.Errorf("%q: %q", url, it.Host())
		}
	}
}

func FuzzReader(f *testing.F) {
	dice := rand.New(rand.NewPCG(3, 0))
	for range 20 {
		it := someItem(dice)
		f.Add(AppendBody(nil, host, &it))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, at := range []string{"", host} {
			var r Reader
			it, err := r.ReadBody(body, at)
			if err != nil {
				continue
			}
			if n := len(it.URL) + len(it.Seed) + len(it.From) + len(it.Path) + len(it.Robots); n > 3*(len(body)+len(host)+9) {
				t.Errorf("%d bytes became %d", len(body), n)
			}
			if got := LiftOf(body); got != it.Lift {
				t.Errorf("a lift of %d is found, %d is read", got, it.Lift)
			}
			again := AppendBody(nil, at, &it)
			if got, err := r.ReadBody(again, at); err != nil || got != it {
				t.Errorf("%+v became %+v, %v", it, got, err)
			}
			if !bytes.Equal(AppendBody(nil, at, &it), again) {
				t.Error("it is written in two ways")
			}
		}
	})
}

// usual returns items like those from pages.
func usual() (all []Item) {
	for i := range 64 {
		from := fmt.Sprintf("https://%s/articles/2026/%08x/", host, i*7919)
		all = append(all, Item{URL: fmt.Sprintf("%sa-title-in-words-%d.html", from, i), From: from,
			Seed: "https://" + host + "/", Path: "LL", Depth: 2, Kind: page.Anchor})
	}
	return all
}

func BenchmarkAppend(b *testing.B) {
	items := usual()
	var to []byte
	for b.Loop() {
		to = to[:0]
		for i := range items {
			to = Append(to, host, &items[i])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(items)), "ns/item")
	b.ReportMetric(float64(len(to))/float64(len(items)), "bytes/item")
	b.ReportAllocs()
}

func BenchmarkRead(b *testing.B) {
	var frames []byte
	items := usual()
	for i := range items {
		frames = Append(frames, host, &items[i])
	}
	for name, share := range map[string]int{"one": 0, "shared": 64 << 10} {
		b.Run(name, func(b *testing.B) {
			r := Reader{Share: share}
			for b.Loop() {
				for rest := frames; len(rest) > 0; {
					var err error
					if _, rest, err = r.Read(rest, host); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(items)), "ns/item")
			b.ReportAllocs()
		})
	}
}

func TestReadingTakesOneAllocation(t *testing.T) {
	it := usual()[0]
	frame, to := Append(nil, host, &it), make([]byte, 0, 1024)
	var r Reader
	if n := testing.AllocsPerRun(100, func() { to = Append(to[:0], host, &it) }); n > 0 {
		t.Errorf("writing takes %v", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, _, _ = r.Read(frame, host) }); n > 1 {
		t.Errorf("reading takes %v", n)
	}
}
