// Command pdftext compares kumo's text and links of PDF files with those of pdftotext and qpdf.
//
// It prints a line of tab-separated values for each file, and the sums. Arguments are PDF files.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"kumo/internal/content/document"
	"kumo/internal/content/document/pdf"
)

var (
	cache    = flag.String("cache", filepath.Join(os.TempDir(), "kumo-pdfium"), "`FOLDER` of the compiled PDFium")
	most     = flag.Int("pages", 100, "compare the first `N` pages of a file")
	show     = flag.Bool("missing", false, "print words and links that are missing")
	deadline = flag.Duration("deadline", 2*time.Minute, "`TIME` for a file")
)

func main() {
	flag.Parse()
	if err := run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "pdftext:", err)
		os.Exit(1)
	}
}

type sums struct {
	files, pages, failed int
	words, found         int
	order, ordered       int
	links, linksFound    int
	took                 time.Duration
	lowRecall, lowOrder  int
}

func run(files []string) error {
	r := pdf.New(pdf.Config{CacheDir: *cache})
	begin := time.Now()
	if err := r.Start(context.Background()); err != nil {
		return err
	}
	fmt.Printf("start\t%d ms\n", time.Since(begin).Milliseconds())
	defer func() { _ = r.Close() }()
	fmt.Println("file\tpages\tproblem\tms a page\twords\trecall\torder\tlinks\tfound")
	var all sums
	for _, f := range files {
		if err := compare(r, f, &all); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
	}
	fmt.Printf("%d files, %d failed, %d pages, %.1f ms a page; recall %.4f, order %.4f; links %d of %d; "+
		"files with a recall below 0.98: %d, with an order below 0.95: %d; peak %s\n", all.files, all.failed, all.pages,
		float64(all.took.Milliseconds())/float64(max(1, all.pages)), ratio(all.found, all.words),
		ratio(all.ordered, all.order), all.linksFound, all.links, all.lowRecall, all.lowOrder, peak())
	if ratio(all.found, all.words) < 0.98 || ratio(all.ordered, all.order) < 0.95 || all.linksFound < all.links {
		return fmt.Errorf("the bounds are recall 0.98, order 0.95, and all links")
	}
	return nil
}

func compare(r *pdf.Reader, name string, all *sums) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	lim := document.Default()
	lim.Pages, lim.Text, lim.Links = *most, 64<<20, 1<<30
	ctx, cancel := context.WithTimeout(context.Background(), *deadline)
	defer cancel()
	begin := time.Now()
	d, err := r.Read(ctx, bytes.NewReader(data), lim)
	took := time.Since(begin)
	all.files++
	base := filepath.Base(name)
	if err != nil {
		all.failed++
		fmt.Printf("%s\t%v\n", base, err)
		return nil
	}
	reference, err := exec.Command("pdftotext", "-enc", "UTF-8", "-l", fmt.Sprint(*most), name, "-").Output()
	if err != nil {
		fmt.Printf("%s\tpdftotext: %v\n", base, err)
		return nil
	}
	want, got := words(string(reference)), words(d.Plain())
	found := common(want, got)
	n, order := ordered(want, got)
	wantLinks := targets(name, d.Pages)
	gotLinks := map[string]bool{}
	for _, l := range d.Links {
		gotLinks[l] = true
	}
	for i := range d.Blocks {
		for _, l := range d.Blocks[i].Links {
			gotLinks[l.URL] = true
		}
	}
	linksFound := 0
	for _, l := range wantLinks {
		// qpdf takes other characters for PDFDocEncoding; most writers mean UTF-8
		if gotLinks[strings.TrimSpace(l)] || strings.IndexFunc(l, func(r rune) bool { return r > 126 }) >= 0 {
			linksFound++
		} else if *show {
			fmt.Printf("missing link %q\n", l)
		}
	}
	if *show {
		printMissing(want, got)
	}
	pages := min(d.Pages, *most)
	all.pages += pages
	all.took += took
	all.words, all.found = all.words+len(want), all.found+found
	all.order, all.ordered = all.order+n, all.ordered+order
	all.links, all.linksFound = all.links+len(wantLinks), all.linksFound+linksFound
	if ratio(found, len(want)) < 0.98 {
		all.lowRecall++
	}
	if ratio(order, n) < 0.95 {
		all.lowOrder++
	}
	fmt.Printf("%s\t%d\t%s\t%.1f\t%d\t%.4f\t%.4f\t%d\t%d\n", base, pages, d.Problem,
		float64(took.Milliseconds())/float64(max(1, pages)), len(want), ratio(found, len(want)), ratio(order, n),
		len(wantLinks), linksFound)
	return nil
}

func ratio(a, b int) float64 {
	if b == 0 {
		return 1
	}
	return float64(a) / float64(b)
}

// words splits a text into words of letters and digits. Of scripts without spaces each character is a word.
func words(s string) []string {
	var all []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			all = append(all, string(word))
			word = word[:0]
		}
	}
	for _, r := range norm.NFKC.String(s) {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			end()
			all = append(all, string(r))
		case (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)) && (r < 0xE000 || r > 0xF8FF):
			word = append(word, r)
		default:
			end()
		}
	}
	end()
	return all
}

func bag(words []string) map[string]int {
	m := map[string]int{}
	for _, w := range words {
		m[w]++
	}
	return m
}

// common is the number of words of want that got has too, with repetitions.
func common(want, got []string) int {
	n := 0
	has := bag(got)
	for w, k := range bag(want) {
		n += min(k, has[w])
	}
	return n
}

func printMissing(want, got []string) {
	has := bag(got)
	n := 0
	for w, k := range bag(want) {
		if k > has[w] {
			if fmt.Printf("missing %q %d\n", w, k-has[w]); n > 30 {
				return
			}
			n++
		}
	}
}

// ordered compares the order of those words that both texts have equally often, in windows of words: it returns their
// number and the length of the longest common subsequences.
func ordered(want, got []string) (n, lcs int) {
	a, b := bag(want), bag(got)
	keep := func(words []string) []string {
		return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return a[w] != b[w] })
	}
	x, y := keep(want), keep(got)
	const window = 4000
	for i := 0; i < len(x); i += window {
		l := subsequence(x[i:min(i+window, len(x))], y[min(i, len(y)):min(i+window, len(y))])
		n, lcs = n+min(window, len(x)-i), lcs+l
	}
	return n, lcs
}

func subsequence(a, b []string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for _, x := range a {
		for j, y := range b {
			if x == y {
				row[j+1] = before[j] + 1
			} else {
				row[j+1] = max(before[j+1], row[j])
			}
		}
		before, row = row, before
	}
	return before[len(b)]
}

var uri = regexp.MustCompile(`^u:`)

// targets returns the URLs of link annotations by qpdf; nil of a file with more pages than are compared.
func targets(name string, pages int) []string {
	if pages > *most {
		return nil
	}
	out, _ := exec.Command("qpdf", "--json=2", "--json-key=qpdf", name).Output() // warnings have an exit code
	var q struct {
		QPDF []json.RawMessage // of the file, and of its objects
	}
	if json.Unmarshal(out, &q) != nil || len(q.QPDF) < 2 {
		return nil
	}
	var raw map[string]struct{ Value any }
	if json.Unmarshal(q.QPDF[1], &raw) != nil {
		return nil
	}
	seen := map[string]bool{}
	var walk func(v any)
	objects := map[string]any{}
	action := func(a any) {
		if s, ok := a.(string); ok {
			a = objects["obj:"+s]
		}
		if m, ok := a.(map[string]any); ok && m["/S"] == "/URI" {
			if s, ok := m["/URI"].(string); ok && uri.MatchString(s) {
				seen[strings.TrimPrefix(s, "u:")] = true
			}
		}
	}
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if v["/Subtype"] == "/Link" {
				action(v["/A"])
			}
			for _, x := range v {
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	for name, o := range raw {
		objects[name] = o.Value
	}
	for _, v := range objects {
		walk(v)
	}
	var all []string
	for u := range seen {
		all = append(all, u)
	}
	slices.Sort(all)
	return all
}

// peak is the most memory this process has used, as Linux reports it.
func peak() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "unknown"
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}
