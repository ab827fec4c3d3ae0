package duplicate

import (
	"crypto/sha1"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vocabulary has a typical word distribution: few frequent words, many rare ones.
func vocabulary(rnd *rand.Rand) func() string {
	zipf := rand.NewZipf(rnd, 1.2, 8, 20_000)
	return func() string { return fmt.Sprintf("w%c%c%x", 'a'+rune(rnd.IntN(2)), 'k', zipf.Uint64()) }
}

func prose(rnd *rand.Rand, words int) []string {
	next := vocabulary(rnd)
	text := make([]string, words)
	for i := range text {
		text[i] = next()
	}
	return text
}

// changed replaces a part of the words.
func changed(rnd *rand.Rand, text []string, part float64) []string {
	next, out := vocabulary(rnd), append([]string(nil), text...)
	for i := range out {
		if rnd.Float64() < part {
			out[i] = next() + "x"
		}
	}
	return out
}

const around = `<nav><a href=/>Home</a><a href=/docs>Documents of the whole house</a></nav><footer>All rights reserved by
those who have them, in every country and for all time to come, as far as the law has it</footer>`

func page(text []string) []byte {
	return []byte("<html><title>" + text[0] + "</title>" + around + "<p>" + strings.Join(text, " ") + "</p></html>")
}

// Recall by the changed part of a page, and precision: pages with other words and the same boilerplate are not
// duplicates.
func TestRecallAndPrecision(t *testing.T) {
	const pages = 1000
	rnd := rand.New(rand.NewPCG(1, 2))
	table, r := NewTable(0), &Reader{}
	offer := func(url string, text []string) Match {
		body := page(text)
		sig := r.Read(body)
		return table.FindOrAdd(url, "example.com", sha1.Sum(body), &sig)
	}
	texts := make([][]string, pages)
	wrong := 0
	for i := range texts {
		texts[i] = prose(rnd, 100+rnd.IntN(900))
		if offer(fmt.Sprint(i), texts[i]).URL != "" {
			wrong++
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d pages are taken for others", wrong, pages)
	}
	for _, c := range []struct{ part, least, most float64 }{{0.01, 1, 1}, {0.05, 0.97, 1}, {0.10, 0.5, 1},
		{0.25, 0, 0.02}} {
		found := 0
		for i := range texts {
			body := page(changed(rnd, texts[i], c.part))
			sig := r.Read(body)
			m, _ := table.find(&entry{domain: hash("example.com"), sig: &sig, digest: uint64(i)})
			if m.URL == fmt.Sprint(i) {
				found++
			} else if m.URL != "" {
				wrong++
			}
		}
		got := float64(found) / pages
		t.Logf("%2.0f %% of the words changed: %5.1f %% found, %d taken for another page", 100*c.part, 100*got, wrong)
		if got < c.least || got > c.most || wrong > 0 {
			t.Errorf("%v changed: %v found, %d wrong", c.part, got, wrong)
		}
	}
}

func like(t *testing.T, a, b string) bool {
	t.Helper()
	r := &Reader{}
	x, y := r.Read([]byte(a)), r.Read([]byte(b))
	return x.near(&y)
}

func TestWhatIsCompared(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	long := strings.Join(prose(rnd, 200), " ")
	other := strings.Join(prose(rnd, 200), " ")
	nav := "<nav>" + strings.Repeat("<a href=/x>one of the many places of this site</a>", 200) + "</nav>"
	links := func(seed uint64) string {
		return "<ul><li><a href=/1>" + strings.Join(prose(rand.New(rand.NewPCG(seed, 1)), 60), "</a><li><a href=/2>") +
			"</a></ul>"
	}
	for _, c := range []struct {
		what, a, b string
		want       bool
	}{
		{"the same", long, long, true},
		{"other text", long, other, false},
		{"other text within much of the same", nav + long, nav + other, false},
		{"other scripts", "<script>var a = '" + other + "'</script>" + long, "<script>x</script>" + long, true},
		{"other tags", "<b class='x>y'>" + long, "<i>" + long + "<!-- " + other + " -->", true},
		{"other case", long, strings.ToUpper(long), true},
		{"other links in the same text", "<p>" + long[:300] + links(1), "<p>" + long[:300] + links(2), false},
		{"another picture", long + "<img src=1.jpg>", long + "<img src=2.jpg>", false},
		{"a picture's other query", long + "<img src='1.jpg?a'>", long + "<img src='1.jpg?b'>", true},
		{"two words", "<title>A</title>Nothing", "<title>A</title><a href=/2></a>Nothing", false},
		{"no words", "<img src=1.jpg>", "<img src=1.jpg><br>", false},
		{"Japanese", strings.Repeat("吾輩は猫である名前はまだ無い。", 5) + "どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で",
			strings.Repeat("吾輩は猫である名前はまだ無い。", 5) + "どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした処で", true},
	} {
		if got := like(t, c.a, c.b); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

func TestFewWords(t *testing.T) {
	const text = "<p>No events this month.</p>"
	for _, c := range []struct {
		what, a, b string
		want       bool
	}{
		{"other links", text + "<a href=/1>next</a>", text + "<a href=/2>next</a> <a>previous</a>", true},
		{"other numbers", "<h1>March 2031</h1>" + text, "<h1>MARCH 2032</h1>" + text, true},
		{"another month", "<h1>March 2031</h1>" + text, "<h1>April 2031</h1>" + text, false},
		{"numbers alone", "<td>12<td>13<td>14", "<td>12<td>13<td>15", false},
		{"the same numbers", "<td>12<td>13<td>14<a href=/1></a>", "<td>12<td>13<td>14<a href=/2></a>", true},
		{"two words", "<p>Photo 1 <a href=/1>next</a>", "<p>Photo 2 <a href=/2>next</a>", false},
		{"an empty application", "<div id=app data-route=1></div>", "<div id=app data-route=2></div>", false},
		{"another picture", text + "<img src=1.jpg>", text + "<img src=2.jpg>", false},
		{"another video", text + "<video src=1.mp4>", text + "<video src=2.mp4>", false},
		{"another frame", text + "<iframe src=1.html>", text + "<iframe src=2.html>", false},
	} {
		table := NewTable(2)
		offer := func(url, domain, html string) Match {
			var r Reader
			sig := r.Read([]byte(html))
			return table.FindOrAdd(url, domain, [20]byte{byte(len(url)), byte(len(table.pages))}, &sig)
		}
		offer("a", "x.example", c.a)
		if m := offer("bb", "y.example", c.b); m.Brief {
			t.Errorf("%s: like a page of another domain", c.what)
		}
		if m := offer("ccc", "x.example", c.b); m.Brief != c.want || m.Domain != c.want || m.Exact {
			t.Errorf("%s: %+v", c.what, m)
		}
		for i := range 3 { // which evicts it
			offer(strings.Repeat("d", 4+i), "x.example", strings.Repeat("other words "+strings.Repeat("w", i), 3))
		}
		if m := offer("e", "x.example", c.b); m.URL == "a" {
			t.Errorf("%s: like a page that was forgotten", c.what)
		}
	}
}

func TestTableForgetsTheOldest(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	table, r := NewTable(100), &Reader{}
	texts := make([][]string, 1000)
	for i := range texts {
		texts[i] = prose(rnd, 100)
		sig := r.Read(page(texts[i]))
		table.FindOrAdd(fmt.Sprint(i), "a", sha1.Sum(page(texts[i])), &sig)
	}
	if len(table.pages) != 100 || len(table.exact) != 100 || len(table.slots[0]) > initialSlots {
		t.Errorf("%d pages, %d digests, %d places", len(table.pages), len(table.exact), len(table.slots[0]))
	}
	for i, want := range map[int]string{0: "", 899: "", 900: "900", 999: "999"} {
		sig := r.Read(page(texts[i]))
		if m, _ := table.find(&entry{sig: &sig, digest: 7, domain: hash("a")}); m.URL != want {
			t.Errorf("%d: %q", i, m.URL)
		}
	}
}

// A copy on another domain is a match, but is stored as the first of its domain.
func TestDomains(t *testing.T) {
	table, r := NewTable(0), &Reader{}
	text := page(prose(rand.New(rand.NewPCG(7, 8)), 100))
	sig := r.Read(text)
	for i, want := range []Match{{}, {URL: "0", Exact: true, Domain: true}, {URL: "0", Exact: true},
		{URL: "2", Exact: true, Domain: true}} {
		domain := "a.test"
		if i >= 2 {
			domain = "b.test"
		}
		if got := table.FindOrAdd(fmt.Sprint(i), domain, sha1.Sum(text), &sig); got != want {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
	if got := table.FindOrAdd("4", "b.test", [20]byte{9}, nil); got.URL != "" {
		t.Errorf("what is no text is like %s", got.URL)
	}
}

func FuzzRead(f *testing.F) {
	for _, html := range []string{"<p>a b c d", "<", "</", "<!--", "<a href='", "<script></scrip", "<img src=",
		"\xe3\x81 \xff"} {
		f.Add([]byte(html))
	}
	f.Fuzz(func(t *testing.T, html []byte) {
		r := &Reader{}
		a := r.Read(html)
		if b := r.Read(html); a != b {
			t.Fatal("read again, it is another")
		}
	})
}

func BenchmarkRead(b *testing.B) {
	body := page(prose(rand.New(rand.NewPCG(1, 2)), 3000))
	r := &Reader{}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r.Read(body)
	}
}

// BenchmarkReadDocs reads the pages in the directory KUMO_TEST_HTML.
func BenchmarkReadDocs(b *testing.B) {
	names, _ := filepath.Glob(filepath.Join(os.Getenv("KUMO_TEST_HTML"), "*.html"))
	if len(names) == 0 {
		b.Skip("KUMO_TEST_HTML has no pages")
	}
	var pages [][]byte
	size := 0
	for _, name := range names {
		body, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		pages, size = append(pages, body), size+len(body)
	}
	r := &Reader{}
	b.SetBytes(int64(size / len(pages)))
	for i := 0; b.Loop(); i++ {
		r.Read(pages[i%len(pages)])
	}
}

func BenchmarkOffer(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	table, r := NewTable(0), &Reader{}
	sigs := make([]Signature, 4096)
	for i := range sigs {
		sigs[i] = r.Read(page(prose(rnd, 100)))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		table.FindOrAdd("https://example.com/page", "example.com", [20]byte{byte(i), byte(i >> 8), byte(i >> 16)},
			&sigs[i%len(sigs)])
	}
}

// A match contains the number of earlier copies.
func TestCopiesAreCounted(t *testing.T) {
	table := NewTable(0)
	for i := range uint32(4) {
		m := table.FindOrAdd(fmt.Sprint("https://example.com/", i), "example.com", [20]byte{1}, nil)
		if m.Domain != (i > 0) || m.Copies != max(i, 1)-1 {
			t.Errorf("page %d: %+v", i, m)
		}
	}
}
