package wire

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/verify"
	"kumo/internal/base/advice"
	"kumo/internal/content/policy"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
	"kumo/internal/state/store/jsonl"
)

// wantVerified checks that a folder has no faults, and that the verification changes nothing.
func wantVerified(t *testing.T, dir string) *verify.Report {
	t.Helper()
	before := contentsOf(t, dir)
	// Little memory, to force sorting on disk.
	r, err := Verify(t.Context(), dir, verify.Config{Temp: t.TempDir(), Memory: 64 << 10,
		Fault: func(f verify.Fault) { t.Errorf("%s: %s", f.Check, &f) }})
	if advice.IsUsage(err) {
		return nil // it died before it had created a crawl
	}
	if err != nil {
		t.Fatal(err)
	}
	after := contentsOf(t, dir)
	for name, text := range before {
		if after[name] != text {
			t.Errorf("%s was changed", name)
		}
		delete(after, name)
	}
	for name := range after {
		t.Errorf("%s was made", name)
	}
	return r
}

// contentsOf returns the contents of a folder's files by name.
func contentsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		short, _ := filepath.Rel(dir, name)
		all[filepath.ToSlash(short)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// faultsOf verifies a folder.
func faultsOf(t *testing.T, dir string) (faults []verify.Fault) {
	t.Helper()
	_, err := Verify(t.Context(), dir, verify.Config{Fault: func(f verify.Fault) { faults = append(faults, f) }})
	if err != nil {
		t.Fatal(err)
	}
	return faults
}

// stopped returns the folder of a crawl stopped at a limit, with all kinds of data.
func stopped(t *testing.T) string {
	t.Helper()
	cfg := synthweb.Messy(3, 12, 250)
	j := jobtest.For(jobtest.Serve(t, cfg), t.TempDir())
	j.Crawl.Pages, j.Crawl.Tries, j.Crawl.Depth = 40, 1, 6
	j.WARCSize = 128 << 10
	j.Frontier.Memory = 1 << 10 // so that a part of the frontier is on disk
	j.Fetch.ConnectTimeout, j.Fetch.Timeout = time.Second, time.Second
	for range 2 { // the state of the second run begins with a checkpoint
		if err := run(t, t.Context(), j); err != nil && !errors.Is(err, policy.ErrLimit) {
			t.Fatal(err)
		}
		j.Crawl.Pages += 20
	}
	return j.Dir
}

func TestVerifyFindsNothingWrongWithACrawl(t *testing.T) {
	t.Parallel()
	for _, c := range wantVerified(t, stopped(t)).Checks {
		if len(c.Notes) > 0 {
			t.Errorf("%s: %v", c.Name, c.Notes)
		}
	}
}

func TestVerifyRefusesACrawlThatRuns(t *testing.T) {
	t.Parallel()
	s := jobtest.Serve(t, synthweb.Clean(1, 2, 20))
	j := jobtest.For(s, t.TempDir())
	c, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), j.Dir, verify.Config{}); !errors.Is(err, folder.ErrLocked) {
		t.Errorf("verified while it runs: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	wantVerified(t, j.Dir)
	if _, err := Verify(t.Context(), t.TempDir(), verify.Config{}); !advice.IsUsage(err) {
		t.Errorf("verified what is no crawl: %v", err)
	}
}

// without returns a function that removes the n-th line, from 0.
func without(n int) func(string) string {
	return func(text string) string {
		l := strings.SplitAfter(text, "\n")
		return strings.Join(slices.Delete(l, n, n+1), "")
	}
}

// lost stands for a deleted file.
func lost(string) string { return "" }

func short(text string) string { return text[:len(text)-100] }

func half(text string) string { return text[:len(text)/2] }

// withoutSkip removes the line of a URL excluded by robots.txt. A URL that failed with its host would wait for the next
// run.
func withoutSkip(text string) string {
	l := strings.SplitAfter(text, "\n")
	return without(slices.IndexFunc(l, func(s string) bool { return strings.Contains(s, `"rule":"robots"`) }))(text)
}

// withoutPage removes the line of a visit of a page.
func withoutPage(text string) string {
	l := strings.SplitAfter(text, "\n")
	return without(slices.IndexFunc(l, func(s string) bool {
		return strings.HasSuffix(s, " -\n") &&
			strings.Contains(s, "   200 ")
	}))(text)
}

// blank clears a third in the middle.
func blank(text string) string {
	n := len(text) / 3
	return text[:n] + strings.Repeat("\x00", n) + text[2*n:]
}

// swapped exchanges two lines.
func swapped(text string) string {
	l := strings.SplitAfter(text, "\n")
	l[2], l[3] = l[3], l[2]
	return strings.Join(l, "")
}

func TestVerifyNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := stopped(t)
	kept := contentsOf(t, dir)
	for _, c := range []struct {
		about, file string // the first file with this prefix
		change      func(string) string
		check, what string // of at least one fault
	}{
		{"a WARC file cut short", "warc/test", short, "warc", "the file ends within a record"},
		{"a hole in a WARC file", "warc/test", blank, "warc", ""},
		{"a hole in a WARC file, for who named its records", "warc/test", blank, "pages", "has no record of it at byte"},
		{"a page's line lost", "pages.jsonl", without(4), "warc", "no line of pages.jsonl refers to the record"},
		{"a page's line lost, for its visit", "pages.jsonl", without(4), "crawl.log",
			"pages.jsonl has no line of this visit"},
		{"a visit's line lost", "crawl.log", withoutPage, "pages", "crawl.log has no line of this visit"},
		{"a visit's line lost, for the database", "crawl.log", withoutPage, "seen", "but crawl.log has no visit then"},
		{"a skip's line lost", "skipped.jsonl", withoutSkip, "urls", "it is lost"},
		{"a skip's line lost, for the counters", "skipped.jsonl", withoutSkip, "report", "skipped by"},
		{"an index line lost", "index.cdxj", without(3), "cdxj", "the record has no line in index.cdxj"},
		{"an index not sorted", "index.cdxj", swapped, "cdxj", "is not sorted"},
		{"the set-aside URLs lost", "state/deferred", lost, "deferred", "the journal records"},
		{"a run lost", "state/seen/00", lost, "seen", ""},
		{"a hole in a run", "state/seen/00", blank, "seen", "damaged"},
		{"a hole in the digests", "state/digests/00", blank, "digests", "damaged"},
		{"a queue lost", "state/frontier/queue", lost, "frontier", ""},
		{"a hole in a queue", "state/frontier/queue", blank, "frontier", "damaged block"},
		{"a checkpoint cut short", "state/frontier/checkpoint", short, "frontier", "damaged"},
		{"the journal's end lost", "state/journal", half, "journal", "it ends at"},
		{"the journal lost", "state/journal", lost, "journal", "has lost its state"},
		{"settings that cannot be read", "config.yaml", func(s string) string { return s + "depth: [" }, "settings",
			"config.yaml"},
		{"another count", "report.json", func(s string) string { return strings.Replace(s, `"pages": 60`, `"pages": 61`, 1) },
			"report",
			"pages: recorded 61, counted 60"},
	} {
		t.Run(c.about, func(t *testing.T) {
			name := firstOf(kept, c.file)
			path := filepath.Join(dir, filepath.FromSlash(name))
			if text := c.change(kept[name]); text != "" {
				write(t, path, text)
			} else if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			faults := faultsOf(t, dir)
			write(t, path, kept[name])
			if !slices.ContainsFunc(faults, func(f verify.Fault) bool {
				return f.Check == c.check &&
					strings.Contains(f.What, c.what)
			}) {
				t.Errorf("%s changed: no fault of %s says %q", name, c.check, c.what)
				for _, f := range faults {
					t.Logf("%s: %s", f.Check, &f)
				}
			}
		})
	}
	wantVerified(t, dir)
}

func firstOf(files map[string]string, prefix string) string {
	names := slices.Sorted(maps.Keys(files))
	i, _ := slices.BinarySearch(names, prefix)
	if i == len(names) || !strings.HasPrefix(names[i], prefix) {
		panic("the crawl has no " + prefix)
	}
	for strings.HasSuffix(names[i], ".cdxj") && !strings.HasPrefix(prefix, "index") {
		i++
	}
	return names[i]
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestVerifyFindsFlippedBytes changes one byte at a time. A change may only remain undetected if no other file contains
// the same data, nor a checksum.
func TestVerifyFindsFlippedBytes(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	dir := stopped(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	for name, text := range contentsOf(t, dir) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		for range min(len(text), 4) {
			at, by := dice.IntN(len(text)), byte(1+dice.IntN(255))
			flipped := []byte(text)
			flipped[at] ^= by
			write(t, path, string(flipped))
			if faults := faultsOf(t, dir); len(faults) == 0 && !saidOnce(name, text, at) && !sameJSON(text, string(flipped)) &&
				!samePages(name, text, string(flipped)) && !sameFields(name, text, string(flipped)) && !sameGzip(name, text,
				string(flipped)) {
				t.Errorf("%s: byte %d ^ %#x of %d is not found: %q", name, at, by, len(text),
					text[max(0, at-60):min(at+30, len(text))])
			}
		}
		write(t, path, text)
	}
}

// once has the parts of files that no other file contains, by file name.
var once = map[string]*regexp.Regexp{
	"config.yaml":       regexp.MustCompile(`(?s).*`),
	"state/config.yaml": regexp.MustCompile(`(?s).*`),
	"pages.jsonl": regexp.MustCompile(`"(final|truncated|malformed|sniffed|robots|revisit|near_duplicate_of|content_digest|server_ip)":"[^"]*"|` +
		`"depth":\d+|_ms":\d+`),
	"skipped.jsonl": regexp.MustCompile(`"why":"([^"\\]|\\.)*","from":"[^"]*","depth":\d+,"time":"[^"]*"|"host":"[^"]*"`),
	// Annotations, and lines of visits without a response.
	"crawl.log": regexp.MustCompile(`(?m)[^ \n]+$|^\S+ +-\d+ .*$|^.* (\S+,)?robots(,\S+)?$`),
	"report.json": regexp.MustCompile(`(?s) *"(errors|slowest_hosts|off_links_by_host)": [\[{].*?[\]}]|` +
		`(?m)^.*(crawl|ended|started|stopped|seconds|_per_second|this_run|given_up|hosts"|"journal").*$`),
	// It is only for explanations; the WARC files contain the originals.
	"state/robots.jsonl":           regexp.MustCompile(`(?s).*`),
	"state/robots/00000001.robots": regexp.MustCompile(`(?s).*`), // a cache: damaged rules are fetched again
}

// sameJSON reports whether two texts are the same JSON except for white space and the case of letters, which is ignored
// in member names.
func sameJSON(a, b string) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, []byte(a)) == nil && json.Compact(&y, []byte(b)) == nil &&
		strings.EqualFold(x.String(), y.String())
}

// samePages reports whether two texts of pages.jsonl are equivalent: the name of an empty member may be damaged.
func samePages(name, a, b string) bool {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	return name == "pages.jsonl" && slices.EqualFunc(x, y, func(a, b string) bool {
		p, err := jsonl.ParsePage([]byte(a))
		q, err2 := jsonl.ParsePage([]byte(b))
		return a == b || err == nil && err2 == nil && reflect.DeepEqual(p, q)
	})
}

// sameFields reports whether two texts of a log differ only in the white space between fields.
func sameFields(name, a, b string) bool {
	return name == "crawl.log" && strings.Count(a, "\n") == strings.Count(b, "\n") &&
		slices.Equal(strings.Fields(a), strings.Fields(b))
}

// sameGzip reports whether two gzip files hold the same bytes: no checksum covers the time in a header, nor the bits
// that fill up the last byte of a stream.
func sameGzip(name, a, b string) bool {
	if !strings.HasSuffix(name, ".gz") {
		return false
	}
	unzip := func(s string) ([]byte, error) {
		r, err := gzip.NewReader(strings.NewReader(s))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	}
	x, err := unzip(a)
	y, err2 := unzip(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}

func saidOnce(name, text string, at int) bool {
	re := once[name]
	if re == nil {
		return false
	}
	return slices.ContainsFunc(re.FindAllStringIndex(text, -1), func(m []int) bool { return m[0] <= at && at < m[1] })
}
