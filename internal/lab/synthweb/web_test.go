package synthweb

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"testing"
)

func TestRatesAndDistributions(t *testing.T) {
	cfg := Messy(3, 100, 20_000)
	w := New(cfg)
	counts := make(map[Kind]int)
	in := make([]int, w.total)
	var out, sizes []int
	var links []link
	t0 := &writer{w: w, port: 80}
	for h := range w.Len() {
		for n := range w.hosts[h].pages {
			r := Ref{Host: uint32(h), N: uint32(n)}
			links = w.links(links[:0], r)
			out = append(out, len(links))
			for _, l := range links {
				counts[l.Kind]++
				if l.Kind == Page {
					in[w.id(l.Ref)]++
				}
			}
			t0.answer(r, "")
			sizes = append(sizes, t0.size(false))
		}
	}
	within := func(what string, got, low, high int) {
		t.Helper()
		if got < low || got > high {
			t.Errorf("%s: %d, want %d to %d", what, got, low, high)
		}
	}
	for k, rate := range cfg.Kinds {
		if v := kinds[k].via; v != byTree && v != byNothing {
			want := 20 * rate
			within("links to "+k.String(), counts[k], want*7/10, want*13/10)
		}
	}
	slices.Sort(sizes)
	within("median size", sizes[len(sizes)/2], 25<<10, 31<<10)
	within("size of the greatest hundredth", sizes[len(sizes)*99/100], 200<<10, 400<<10)
	within("greatest size", sizes[len(sizes)-1], 500<<10, 1<<20)
	within("links a page", sum(out)/len(out), 36, 44)
	slices.Sort(in)
	within("least in-degree", in[deadPages*15], 0, 5)
	within("median in-degree", in[len(in)/2], 5, 25)
	within("greatest in-degree", in[len(in)-1], 1000, 200_000)
}

func sum(ns []int) (total int) {
	for _, n := range ns {
		total += n
	}
	return total
}

func TestSameSeedSameBytes(t *testing.T) {
	a, b, other := New(Messy(5, 9, 300)), New(Messy(5, 9, 300)), New(Messy(6, 9, 300))
	same := 0
	for u := range a.Truth(TruthOptions{Embeds: true}).All(80) {
		x, err := a.Page(u)
		if err != nil {
			t.Fatal(err)
		}
		y, _ := b.Page(u)
		z, _ := other.Page(u)
		if x.Status != y.Status || !bytes.Equal(x.Body, y.Body) || x.Header.Get("Location") != y.Header.Get("Location") {
			t.Errorf("%s differs between two webs of one seed", u)
		}
		if x.Status == 200 && x.Ref.Kind == Page && bytes.Equal(x.Body, z.Body) {
			same++
		}
	}
	if same > 0 {
		t.Errorf("%d pages are the same under another seed", same)
	}
}

func TestDuplicatesHaveTheSameBytes(t *testing.T) {
	w := New(Messy(5, 3, 100))
	for _, pair := range [][2]Ref{
		{{N: 5}, {N: 5, Kind: Copy}},
		{{N: 0}, {N: 0, Kind: Copy}},
		{{N: 8, Kind: Session}, {N: 11, Kind: Session}},
	} {
		x, _ := w.Page(w.URL(pair[0], 80))
		y, _ := w.Page(w.URL(pair[1], 80))
		if x.Ref == y.Ref || len(x.Body) == 0 || !bytes.Equal(x.Body, y.Body) {
			t.Errorf("%v and %v: %d and %d bytes, not the same", x.Ref, y.Ref, len(x.Body), len(y.Body))
		}
	}
}

func TestEveryURLIsFoundAgain(t *testing.T) {
	w := New(Messy(11, 40, 2000))
	for id := range w.ids() {
		r := w.ref(id)
		if w.id(r) != id {
			t.Fatalf("ref %d is %v, whose id is %d", id, r, w.id(r))
		}
		if r.Kind == Calendar && !w.hosts[r.Host].traits.has(Trap) {
			continue
		}
		if got, ok := w.refOf(w.URL(r, 8080)); !ok || got != r {
			t.Fatalf("%s is %v, found %v", w.URL(r, 8080), r, got)
		}
	}
}

func TestTargetsAreComparedUnescaped(t *testing.T) {
	w := New(Messy(1, 2, 50))
	for _, c := range []struct {
		target string
		want   Kind
	}{
		{"/", Page}, {"/robots.txt", Robots}, {"/?copy=1", Copy}, {"/%67one/7.html", Gone}, {"/gone/%37.html", Gone},
		{"/calendar/%3Fmonth=3", Unknown}, {"/gone%2F7.html", Unknown},
		{"/gone/7.htm%6c", Gone}, {"/gone/7.html", Gone}, {"/gone/07.html", Unknown}, {"/gone/99999999999.html", Unknown},
		{"/gone/", Unknown}, {"/private/open/3.html", Open}, {"/private/3.html", Private}, {"/copy=1", Unknown},
	} {
		if got := w.locate(0, []byte(c.target)); got.Kind != c.want {
			t.Errorf("%s is %v, want %v", c.target, got.Kind, c.want)
		}
	}
}

func TestHostNames(t *testing.T) {
	w := New(Messy(1, 12, 50))
	for i := range w.hosts {
		if got, ok := w.hostOf(w.Host(i) + ":80"); !ok || int(got) != i {
			t.Errorf("%s is host %d, found %d", w.Host(i), i, got)
		}
	}
	for _, name := range []string{"", "h1.synth.test", "h9999.synth.test", "mute0001.synth.test", "h0001.example",
		"h00001.synth.test"} {
		if i, ok := w.hostOf(name); ok {
			t.Errorf("%q is taken for host %d", name, i)
		}
	}
	if i, ok := w.hostOf("H0001.Synth.Test"); !ok || i != 1 {
		t.Error("case matters in host names")
	}
}

func TestForbiddenIsWhatRobotsSays(t *testing.T) {
	w := New(Messy(2, 40, 400))
	for id := 0; id < w.ids(); id += 7 {
		r := w.ref(id)
		if barred := w.hosts[r.Host].forbids(r.Kind); barred != w.forbids(r.Host, w.appendPath(nil, r, false)) {
			t.Fatalf("%s: kind says %v, path says %v", w.URL(r, 80), barred, !barred)
		}
	}
	if !w.forbids(0, []byte("/%70rivate/unheard/of")) {
		t.Error("an escaped path under /private/ is not forbidden")
	}
}

func TestGzipIsReadableAndLikeRealPages(t *testing.T) {
	w := New(Messy(4, 20, 400))
	plain, packed := 0, 0
	for id := 0; id < w.total; id += 3 {
		b := &writer{w: w, port: 80}
		b.answer(w.ref(id), "/x")
		var want, got bytes.Buffer
		b.plain(func(p []byte) { want.Write(p) })
		b.gzipped(func(p []byte) { got.Write(p) })
		if want.Len() != b.size(false) || got.Len() != b.size(true) {
			t.Fatalf("sizes %d, %d; announced %d, %d", want.Len(), got.Len(), b.size(false), b.size(true))
		}
		plain, packed = plain+want.Len(), packed+got.Len()
		z, err := gzip.NewReader(&got)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := io.ReadAll(z); err != nil || !bytes.Equal(back, want.Bytes()) {
			t.Fatalf("%v: unpacked to %d of %d bytes: %v", w.ref(id), len(back), want.Len(), err)
		}
	}
	if ratio := float64(plain) / float64(packed); ratio < 3.3 || ratio > 5 {
		t.Errorf("compressed %.2f : 1", ratio)
	}
}

func TestPage(t *testing.T) {
	w := New(Messy(1, 3, 50))
	for _, c := range []struct {
		url    string
		status int
	}{
		{"http://h0000.synth.test/", 200}, {"http://h0000.synth.test/nothing", 404}, {"http://elsewhere.test/", 421},
		{"http://h0000.synth.test:81/go/4", 301}, {w.URL(Ref{Host: uint32(w.Len() + 4)}, 80), 0},
	} {
		a, err := w.Page(c.url)
		if err != nil || a.Status != c.status {
			t.Errorf("%s: %d, %v; want %d", c.url, a.Status, err, c.status)
		}
		if c.status == http.StatusMovedPermanently && a.Header.Get("Location") == "" {
			t.Errorf("%s leads nowhere", c.url)
		}
	}
}
