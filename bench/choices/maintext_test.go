package choices

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	readability "codeberg.org/readeck/go-readability/v2"
	trafilatura "github.com/markusmobius/go-trafilatura"
	xhtml "golang.org/x/net/html"

	"kumo/internal/content/maintext"
	"kumo/internal/lab/sitepages"
)

// extracted has a library's results for all pages.
type extracted struct {
	Library   string   `json:"library"`
	Version   string   `json:"version"`
	CPU       float64  `json:"cpu"` // seconds for all pages
	Texts     []string `json:"texts"`
	Headlines []string `json:"headlines"`
	Authors   []string `json:"authors"`
	Dates     []string `json:"dates"`
}

func (e *extracted) add(text, headline, author, date string) {
	e.Texts, e.Headlines = append(e.Texts, text), append(e.Headlines, headline)
	e.Authors, e.Dates = append(e.Authors, author), append(e.Dates, date)
}

// mainTextLibraries are the libraries in Go.
var mainTextLibraries = []struct {
	name    string
	extract func(e *extracted, p *sitepages.Page, at *url.URL)
}{
	{"kumo", func(e *extracted, p *sitepages.Page, at *url.URL) {
		t, _ := maintext.Extract([]byte(p.HTML), p.URL)
		e.add(t.Text, t.Headline, t.Author, t.Published)
	}},
	{"go-readability", func(e *extracted, p *sitepages.Page, at *url.URL) {
		a, err := readability.FromReader(strings.NewReader(p.HTML), at)
		if err != nil || a.Node == nil {
			e.add("", "", "", "")
			return
		}
		var text strings.Builder
		_ = a.RenderText(&text) // cannot fail
		date := ""
		if t, err := a.PublishedTime(); err == nil {
			date = t.Format("2006-01-02")
		}
		e.add(text.String(), a.Title(), a.Byline(), date)
	}},
	{"go-trafilatura", func(e *extracted, p *sitepages.Page, at *url.URL) {
		r, err := trafilatura.Extract(strings.NewReader(p.HTML), trafilatura.Options{OriginalURL: at,
			ExcludeComments: true, EnableFallback: true})
		if err != nil {
			e.add("", "", "", "")
			return
		}
		date := ""
		if !r.Metadata.Date.IsZero() {
			date = r.Metadata.Date.Format("2006-01-02")
		}
		e.add(textOf(r.ContentNode), r.Metadata.Title, r.Metadata.Author, date)
	}},
}

func textOf(n *xhtml.Node) string {
	var b strings.Builder
	if n != nil {
		for d := range n.Descendants() {
			if d.Type == xhtml.TextNode {
				b.WriteString(d.Data + "\n")
			}
		}
	}
	return b.String()
}

// TestMainText compares main texts with those of other libraries on labelled pages: F1 by words for each kind of page,
// headlines, authors and dates, and CPU time in turns. KUMO_TEST_PYTHON names a Python with the packages trafilatura,
// readability-lxml and resiliparse; without it, only the libraries in Go are compared.
func TestMainText(t *testing.T) {
	pages := sitepages.Pages(7, 4) // another seed than that of the package's test
	var all []*extracted
	times := map[string][]float64{}
	for range 4 { // the first round warms up
		all = nil
		for _, l := range mainTextLibraries {
			e := &extracted{Library: l.name}
			begin := cpu()
			for i := range pages {
				at, err := url.Parse(pages[i].URL)
				if err != nil {
					t.Fatal(err)
				}
				l.extract(e, &pages[i], at)
			}
			times[l.name] = append(times[l.name], (cpu() - begin).Seconds())
			all = append(all, e)
		}
	}
	for _, e := range all {
		e.CPU = median(times[e.Library][1:])
	}
	if python := os.Getenv("KUMO_TEST_PYTHON"); python != "" {
		all = append(all, inPython(t, python, pages)...)
	}
	t.Log("\n" + mainTextTable(pages, all))
}

// inPython runs the libraries of Python.
func inPython(t *testing.T, python string, pages []sitepages.Page) (all []*extracted) {
	var in bytes.Buffer
	for _, p := range pages {
		line, err := json.Marshal(map[string]string{"html": p.HTML, "url": p.URL})
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(line, '\n'))
	}
	c := exec.CommandContext(t.Context(), python, "maintext.py")
	c.Stdin = &in
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(out) {
		e := &extracted{}
		if err := json.Unmarshal(line, e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func mainTextTable(pages []sitepages.Page, all []*extracted) string {
	var out strings.Builder
	tab := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tab, "library\t%s\tall\tprecision\trecall\tempty\theadline\tauthor\tdate\tms a page\t\n",
		strings.Join(sitepages.Kinds, "\t"))
	for _, e := range all {
		f, of := map[string]float64{}, map[string]float64{}
		var sum sitepages.Score
		var empty, headlines, titled, authors, named, dates, dated int
		for i, p := range pages {
			s := sitepages.ScoreOf(e.Texts[i], p.Text, p.Optional)
			f[p.Kind] += s.F1
			of[p.Kind]++
			sum.Precision, sum.Recall, sum.F1 = sum.Precision+s.Precision, sum.Recall+s.Recall, sum.F1+s.F1
			empty += count(strings.TrimSpace(e.Texts[i]) == "")
			titled += count(p.Headline != "")
			headlines += count(p.Headline != "" && e.Headlines[i] == p.Headline)
			named += count(p.Author != "")
			authors += count(p.Author != "" && e.Authors[i] == p.Author)
			dated += count(p.Published != "")
			dates += count(p.Published != "" && strings.HasPrefix(e.Dates[i], p.Published))
		}
		n := float64(len(pages))
		fmt.Fprintf(tab, "%s\t", strings.TrimSpace(e.Library+" "+e.Version))
		for _, kind := range sitepages.Kinds {
			fmt.Fprintf(tab, "%.3f\t", f[kind]/of[kind])
		}
		fmt.Fprintf(tab, "%.3f\t%.3f\t%.3f\t%d\t%d/%d\t%d/%d\t%d/%d\t%.2f\t\n", sum.F1/n, sum.Precision/n, sum.Recall/n, empty,
			headlines, titled, authors, named, dates, dated, 1e3*e.CPU/n)
	}
	tab.Flush()
	return out.String()
}

func count(b bool) int { return slices.Index([]bool{false, true}, b) }
