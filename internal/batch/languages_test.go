package batch_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"golang.org/x/text/encoding/htmlindex"

	"kumo/internal/batch"
	"kumo/internal/batch/collection"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
)

// Number of pages to crawl in 27 languages, in .ci/long and elsewhere. KUMO_TEST_BABEL_PAGES overrides it for more
// precise results.
const (
	babelPages = 1100
	babelShort = 270
)

// An outcome counts results for a language's pages.
type outcome struct {
	pages, right, kept int // with main text; kept: accepted by a collection of that language
	bare, told         int // without main text; told: language detected correctly or not at all
	silent, read       int // without declared charset; read: decoded correctly
	wrong              map[string]int
}

// A crawl detects the language of nearly all pages with a main text, and of most pages with few words. A declared
// charset must be decoded correctly.
func TestLanguagesAndCharsetsAreTold(t *testing.T) {
	pages, err := strconv.Atoi(os.Getenv("KUMO_TEST_BABEL_PAGES"))
	if err != nil {
		pages = testmain.Rounds(babelShort, babelPages)
	}
	cfg := synthweb.Config{Seed: 27, Hosts: 5 * len(synthweb.Languages()), Pages: pages, Languages: synthweb.Languages(),
		MedianSize: 4 << 10, MeanLinks: 10}
	w := newWorld(t, cfg)
	c := w.collection("en")
	c.Interval = 0
	p := w.pipeline(day1, 2, c)
	p.Text = text
	w.run(t, p)
	all := map[string]*outcome{}
	web := synthweb.New(cfg)
	for url, d := range w.documents(t, c, day1) {
		truth, ok := web.TextProfile(url)
		if !ok || !d.IsPage() {
			continue
		}
		if all[truth.Language] == nil {
			all[truth.Language] = &outcome{wrong: map[string]int{}}
		}
		all[truth.Language].count(t, url, d, truth)
	}
	var table strings.Builder
	tab := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "\tpages\tright\tkept\twithout text\tnot wrong\tundeclared\tread right\t  wrong")
	for _, code := range synthweb.Languages() {
		o := all[code]
		if o == nil || o.pages < pages/100 {
			t.Errorf("%s: hardly a page came in: %+v", code, o)
			continue
		}
		fmt.Fprintf(tab, "%s\t%d\t%s\t%s\t%d\t%s\t%d\t%s\t  %v\n", code, o.pages, percent(o.right, o.pages),
			percent(o.kept, o.pages), o.bare, percent(o.told, o.bare), o.silent, percent(o.read, o.silent), o.wrong)
		for _, floor := range []struct {
			what     string
			got, all int
			least    float64
		}{{"pages with text are in it", o.right, o.pages, 0.995}, {"pages with text are kept", o.kept, o.pages, 0.99},
			{"pages without are not in another", o.told, o.bare, 0.9},
			{"undeclared pages are read right", o.read, o.silent, 0.97}} {
			if wrong := floor.all - floor.got; wrong > 1 && float64(floor.got) < floor.least*float64(floor.all) {
				t.Errorf("%s: %d of %d %s", code, floor.got, floor.all, floor.what)
			}
		}
	}
	tab.Flush()
	t.Logf("%d pages\n%s", pages, table.String())
}

func percent(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

func (o *outcome) count(t *testing.T, url string, d *batch.Document, truth synthweb.TextProfile) {
	t.Helper()
	language := collection.New().Language
	language.Code = truth.Language
	if d.Text == "" {
		o.bare++
		if d.Lang == "" || d.Lang == truth.Language {
			o.told++
		} else {
			o.wrong["without text: "+d.Lang]++
		}
	} else {
		o.pages++
		if d.Lang == truth.Language {
			o.right++
		} else {
			o.wrong[d.Lang]++
		}
		if language.Accepts(d.Lang, float64(d.Share), float64(d.Confidence)) {
			o.kept++
		}
	}
	same := decoded(d.Raw[d.HeadLen:], d.Charset) == decoded(d.Raw[d.HeadLen:], truth.Charset)
	switch {
	case truth.Declared && !same:
		t.Errorf("%s declares %s, and was read as %s", url, truth.Charset, d.Charset)
	case !truth.Declared:
		o.silent++
		if same {
			o.read++
		} else {
			o.wrong[d.Charset+" for "+truth.Charset]++
		}
	}
}

func decoded(body []byte, charset string) string {
	e, err := htmlindex.Get(charset)
	if err != nil {
		return "in no charset"
	}
	text, err := e.NewDecoder().Bytes(bytes.TrimSpace(body))
	if err != nil {
		return "unreadable"
	}
	return string(text)
}
