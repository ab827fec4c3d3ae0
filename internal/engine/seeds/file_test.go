package seeds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/base/advice"
	"kumo/internal/base/weburl"
)

// seedFile opens a seed file with the given text.
func seedFile(t testing.TB, text string) *File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "seeds.txt")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(t.Context(), name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// seedsOf returns a file's seeds from an offset on, and the offsets behind the parts.
func seedsOf(t testing.TB, f *File, from int64) (seeds []string, ends []int64) {
	t.Helper()
	err := f.Each(from, func(part []weburl.URL, end int64) error {
		for _, u := range part {
			seeds = append(seeds, u.String())
		}
		ends = append(ends, end)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return seeds, ends
}

func TestASeedFilesLines(t *testing.T) {
	f := seedFile(t, "\ufeffhttp://a.test/x#part # the first\r\n\r\n   \n# nothing\n\texample.com  "+
		"\nhttp://a.test/x\nb.test:8080/y\t# z\nlocalhost\n192.0.2.1/\nbücher.example")
	want := []string{"http://a.test/x", "https://example.com/", "http://a.test/x", "https://b.test:8080/y",
		"http://localhost/", "http://192.0.2.1/",
		"https://xn--bcher-kva.example/"}
	if got, _ := seedsOf(t, f, 0); !slices.Equal(got, want) || !slices.Equal(f.First, want) || f.Count != 7 || f.Bad != 0 {
		t.Errorf("%q, %q, %d good and %d bad: %v", got, f.First, f.Count, f.Bad, f.Faults)
	}
}

// Unusual but plausible seeds are accepted.
func TestOddSeeds(t *testing.T) {
	for line, want := range map[string]string{
		"http://a.test/1,2,3.html":         "http://a.test/1,2,3.html",
		`http://a.test/?q={"a":1,"b":2}`:   "http://a.test/?q=%7B%22a%22:1,%22b%22:2%7D",
		"http://a.test/x%2C":               "http://a.test/x%2C",
		"http://a.test/img/w_300/http://b": "http://a.test/img/w_300/http://b",
		"https://intranet/x":               "https://intranet/x",
		"intranet:8080/x":                  "https://intranet:8080/x",
		"localhost/x":                      "http://localhost/x",
		"localhost:81":                     "http://localhost:81/",
		"a.test/p2.html":                   "https://a.test/p2.html",
		"日本。test/x":                        "https://xn--wgv71a.test/x",
		"[::1]/x":                          "http://[::1]/x",
	} {
		if u, err := parseSeed(line); err != nil || u.String() != want {
			t.Errorf("%q is %q (%v), want %q", line, u, err, want)
		}
	}
}

// If all seeds of a file contain commas, it looks like a table; if only some do, it does not.
func TestAFileThatMayBeATableIsDoubted(t *testing.T) {
	for text, doubted := range map[string]bool{
		"http://a.test/1,one\nhttp://b.test/2,two\n": true,
		"http://a.test/1,2.html\nhttp://b.test/\n":   false,
		"http://a.test/1,2.html\n":                   false,
	} {
		if got := seedFile(t, text).Warning(); (got != "") != doubted || doubted &&
			!strings.Contains(got, "all 2 seeds contain a comma") {
			t.Errorf("of %q it says %q", text, got)
		}
	}
}

// All invalid lines are reported at once, with numbers and reasons; valid ones are not affected.
func TestAllBadLinesAreTold(t *testing.T) {
	bad := []struct{ line, why string }{
		{`"http://a.test/"`, "quotes"},
		{`'http://a.test/'`, "quotes"},
		{`<http://a.test/>`, "quotes or brackets"},
		{`1,http://a.test/`, "a line of a table"},
		{`http;http://a.test/`, "a line of a table"},
		{`/relative`, "https://HOST/relative"},
		{`../up`, "no host"},
		{`?q=1`, "no host"},
		{"http://a.test/ http://b.test/", "more than one URL"},
		{"http://a.test/\tTitle", "a space in it"},
		{"http://a.test/ Title", "a space in it"},
		{"word", "https://word/"},
		{`http://a"b.test/`, `no host name has "\"" in it`},
		{`a,b.test`, `no host name has "," in it`},
		{"http://a..test/", "empty label"},
		{"http://", "no host"},
		{"http://a.test:99999/", "port"},
		{"mailto:a@b.test", "http and https"},
		{"ftp://a.test/", "http and https"},
		{"http://user:pw@a.test/", "--user and --password"},
		{"http://a.test/\x00", "control character"},
		{"http://a.test/\xff", "UTF-8"},
		{"http://a.test/" + strings.Repeat("a", 70_000), "longer than 8 KiB"},
		{strings.Repeat("x", 300_000), "longer than 8 KiB"},
		{"http://a.test/,Name", "a line of a table"},
		{"http://a.test/x,", "a line of a table"},
		{`http://a.test/x,"A name"`, "a space in it"},
		{`http://a.test/x,"Name"`, "a line of a table"},
		{"http://a.test,Name", "a line of a table"},
		{"http://a.test/x,https://b.test/", "more than one URL"},
		{"a/p2.html", "https://HOST/a/p2.html"},
		{"intranet/x", "for a host of that name, https://intranet/x"},
		{"word?q", "a word without a dot"},
		{"1/p2.html", "a word without a dot"},
		{"index.html", "a file name"},
		{"page.php?id=1", "a file name"},
	}
	var text strings.Builder
	for i, b := range bad {
		fmt.Fprintf(&text, "http://good.test/%d\n%s\n", i, b.line)
	}
	f := seedFile(t, text.String())
	if f.Count != int64(len(bad)) || f.Bad != int64(len(bad)) || len(f.Faults) != maxFaults {
		t.Fatalf("%d good, %d bad, %d told", f.Count, f.Bad, len(f.Faults))
	}
	for i, fault := range f.Faults {
		if fault.Line != int64(2*i+2) || !strings.Contains(fault.Why.Error(), bad[i].why) || len(fault.Text) > 100 {
			t.Errorf("line %d, %q: %v; want %q of line %d", fault.Line, fault.Text, fault.Why, bad[i].why, 2*i+2)
		}
	}
	for _, b := range bad {
		if _, err := parseSeed(seedOf(b.line)); err == nil || !strings.Contains(err.Error(), b.why) {
			t.Errorf("%.100q: %v, want %q", b.line, err, b.why)
		}
	}
	if err := f.FaultsError(); err == nil || !strings.Contains(err.Error(), "36 of 72 lines") ||
		!strings.Contains(err.Error(), "and 16 more") ||
		!strings.Contains(err.Error(), "--skip-bad-seeds") {
		t.Error(err)
	}
	if got, _ := seedsOf(t, f, 0); len(got) != len(bad) {
		t.Errorf("%d seeds", len(got))
	}
}

// Seeds on the command line are checked in the same way, also all at once.
func TestAllBadSeedsAreTold(t *testing.T) {
	_, err := Parse([]string{"1,http://a.test/", "http://b.test/", "/c"})
	if err == nil || !strings.Contains(err.Error(), `seed "1,http://a.test/"`) ||
		!strings.Contains(err.Error(), `seed "/c"`) {
		t.Error(err)
	}
}

// Reading from the offset behind any part returns the remaining seeds.
func TestSeedsFromAnOffset(t *testing.T) {
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "http://h%d.test/%s # %d\r\n", i, strings.Repeat("x", i%300), i)
		if i%7 == 0 {
			text.WriteString("no seed at all\n\n")
		}
	}
	f := seedFile(t, text.String())
	all, ends := seedsOf(t, f, 0)
	if len(all) != 5000 || ends[len(ends)-1] != int64(text.Len()) {
		t.Fatalf("%d seeds, up to %d of %d bytes", len(all), ends[len(ends)-1], text.Len())
	}
	for i, end := range ends {
		if rest, _ := seedsOf(t, f, end); !slices.Equal(rest, all[min((i+1)*partSeeds, 5000):]) {
			t.Errorf("behind part %d: %d seeds", i, len(rest))
		}
	}
}

// A pipe can be read only once: its content, small or large, is kept, and gives the same seeds as a file.
func TestSeedsFromAPipe(t *testing.T) {
	for _, n := range []int{3, 100_000} {
		var text bytes.Buffer
		for i := range n {
			fmt.Fprintf(&text, "http://h%d.test/\n", i)
		}
		file := seedFile(t, text.String())
		pipe, err := OpenFile(t.Context(), "-", io.MultiReader(&text), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := seedsOf(t, pipe, 0)
		want, _ := seedsOf(t, file, 0)
		if !slices.Equal(got, want) || pipe.Digest != file.Digest || pipe.Count != int64(n) {
			t.Errorf("%d seeds of %d, digests %s and %s", len(got), n, pipe.Digest, file.Digest)
		}
		if err := pipe.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A stop does not wait for a silent pipe.
func TestASilentPipeCanBeStopped(t *testing.T) {
	silent, w := io.Pipe()
	defer w.Close()
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		io.WriteString(w, "http://a.test/\n")
		stop()
	}()
	if _, err := OpenFile(ctx, "-", silent, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestNoSeedFiles(t *testing.T) {
	dir := t.TempDir()
	utf16 := filepath.Join(dir, "utf16")
	if err := os.WriteFile(utf16, []byte("\xff\xfeh\x00t\x00"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{dir: "is a folder", filepath.Join(dir, "none"): "no such file",
		utf16: "UTF-16"} {
		_, err := OpenFile(t.Context(), name, nil, nil)
		if !advice.IsUsage(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Lines and their offsets do not depend on how a file is divided into blocks.
func FuzzLines(f *testing.F) {
	f.Add([]byte("\xef\xbb\xbfa\r\nb\n\n"+strings.Repeat("c", 70_000)+"\nd"), uint64(1))
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		type line struct {
			text string
			end  int64
		}
		read := func(most int) (all []line) {
			dice := rand.New(rand.NewPCG(seed, 2))
			l := lineReader{each: func(text string, end int64) error { all = append(all, line{text, end}); return nil }}
			for rest := text; len(rest) > 0; {
				n := min(len(rest), max(1, dice.IntN(most+1)))
				if n < 3 && len(rest) == len(text) {
					n = min(3, len(rest)) // byte order marks are looked for in the first block
				}
				if l.write(rest[:n]) != nil {
					return nil
				}
				rest = rest[n:]
			}
			l.end()
			return all
		}
		whole, parts := read(len(text)*2), read(10)
		for i := range whole {
			whole[i].text = whole[i].text[:min(len(whole[i].text), maxLine-1)]
		}
		for i := range parts {
			parts[i].text = parts[i].text[:min(len(parts[i].text), maxLine-1)]
		}
		if !slices.Equal(whole, parts) {
			t.Errorf("%d lines, in parts %d", len(whole), len(parts))
		}
	})
}

// Each accepted seed is a URL with a plausible host.
func FuzzSeed(f *testing.F) {
	for _, s := range []string{"http://a.test/", "1,http://a.test/", "a.test:80", "//a.test/", "[::1]/", "0x7f.1",
		"http://a\u3002test/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := parseSeed(seedOf(s))
		if err != nil {
			return
		}
		if u.Scheme() != "http" && u.Scheme() != "https" || u.Hostname() == "" ||
			strings.ContainsAny(u.Hostname(), `"',;<> `) {
			t.Errorf("%q is %q", s, u)
		}
		if again, err := parseSeed(u.String()); err != nil || again != u {
			t.Errorf("%q is %q, and that %q, %v", s, u, again, err)
		}
	})
}

func BenchmarkSeedFile(b *testing.B) {
	var text strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&text, "http://h%d.seeds.test/page/%d/index.html\n", i, i%7)
	}
	name := filepath.Join(b.TempDir(), "seeds.txt")
	if err := os.WriteFile(name, []byte(text.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		f, err := OpenFile(b.Context(), name, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/line")
}

// A scheme is not mistaken for a host with a port, nor is a scheme that lacks a slash.
func TestSchemesAreNoHosts(t *testing.T) {
	for typed, want := range map[string]string{
		"http:/example.com/":      "did you mean http://example.com/?",
		"https:/example.com/a?b#": "did you mean https://example.com/a?b#?",
		"HTTP:/example.com":       "did you mean HTTP://example.com?",
		"https:/":                 "https://HOST/",
		"javascript:1":            "not javascript",
		"mailto:2@example.com":    "not mailto",
		"file:/etc/hosts":         "not file",
	} {
		for name, parse := range map[string]func(string) (weburl.URL, error){"a seed": parseSeed, "a URL": ParseURL} {
			if u, err := parse(typed); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q as %s is %q (%v), want an error with %q", typed, name, u, err, want)
			}
		}
	}
	for typed, want := range map[string]string{"files:81/a": "https://files:81/a",
		"data.test:81": "https://data.test:81/"} {
		if u, err := parseSeed(typed); err != nil || u.String() != want {
			t.Errorf("%q is %q (%v), want %q", typed, u, err, want)
		}
	}
	for _, typed := range []string{"nonsense", "/path", "a/b.html"} {
		if u, err := ParseWritten(typed); err == nil {
			t.Errorf("%q is %q, want an error", typed, u)
		}
	}
}
