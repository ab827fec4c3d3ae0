// Package sitepages generates pages in the style of widespread programs for sites, forums, shops and documentation. Each
// page comes with what a reader would take from it: main text, comments, headline, author, date and kind of page.
//
// The folder templates has a file for each program, named PROGRAM.KIND.html. A template marks the main text, the
// comments, and lines that may be part of the main text or not, such as the date of an entry in a list.
package sitepages

import (
	"embed"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"text/template"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A Page is a generated page with its labels.
type Page struct {
	Program, Kind, URL, HTML string
	Headline                 string // "" if the page has none
	Author                   string // "" if the page names none
	Published                string // a date; "" if the page has none
	Text                     string // main text, without the headline
	Optional                 string // text that may or may not be part of the main text
	Comments                 string // below an article, product or manual; posts of a thread are main text
	Lang                     string
	Markup                   Markup // structure of the main text
}

// Markup has the parts of a main text that its Markdown should have.
type Markup struct {
	Links        []string // references, as in the page
	Items, Cells []string // texts of items of lists, and of cells of tables
}

// Kinds are the kinds of pages.
var Kinds = []string{"article", "forum", "product", "listing", "documentation", "service", "other"}

//go:embed templates
var files embed.FS

// Marks around labelled text. Marked text is not nested.
const (
	beginMain     = '\uE000'
	beginOptional = '\uE001'
	beginComment  = '\uE002'
	endMark       = '\uE003'
)

// Pages returns a number of pages of each template. The same seed gives the same pages.
func Pages(seed uint64, each int) []Page {
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		panic(err) // the pattern is constant
	}
	var all []Page
	for i, name := range names {
		for j := range each {
			all = append(all, generate(name, rand.New(rand.NewPCG(seed, uint64(i)<<32|uint64(j))), j))
		}
	}
	return all
}

// generate fills a template.
func generate(name string, dice *rand.Rand, number int) Page {
	parts := strings.Split(path.Base(name), ".")
	w := &writer{dice: dice, tongue: &tongues[0]}
	if number%3 == 2 {
		w.tongue = &tongues[1+dice.IntN(len(tongues)-1)]
	}
	p := Page{Program: parts[0], Kind: parts[1], Lang: w.lang}
	headline := w.headline()
	w.author = w.pick(w.people)
	w.date = time.Date(2005+dice.IntN(20), time.Month(1+dice.IntN(12)), 1+dice.IntN(28), dice.IntN(24), dice.IntN(60), 7, 0,
		time.UTC)
	p.URL = fmt.Sprintf("https://www.%s.example/%s/%d", p.Program, "pages", 1000+dice.IntN(9000))
	funcs := w.funcs()
	funcs["title"] = func() string { p.Headline = headline; return headline }
	funcs["author"] = func() string { p.Author = w.author; return w.author }
	funcs["date"] = func(layout string) string {
		p.Published = w.date.Format(time.DateOnly)
		return w.date.Format(layout)
	}
	t := template.Must(template.New(path.Base(name)).Funcs(funcs).ParseFS(files, name))
	var b strings.Builder
	if err := t.Execute(&b, nil); err != nil {
		panic(err) // a template is wrong
	}
	marked := b.String()
	p.Text, p.Optional, p.Comments = labelled(marked, beginMain), labelled(marked, beginOptional),
		labelled(marked, beginComment)
	p.Markup = markupOf(marked)
	p.HTML = strings.Map(func(r rune) rune {
		if r >= beginMain && r <= endMark {
			return -1
		}
		return r
	}, marked)
	return p
}

// markupOf returns the structure of the marked main text.
func markupOf(marked string) (m Markup) {
	for {
		_, after, found := strings.Cut(marked, string(beginMain))
		if !found {
			return m
		}
		part, rest, _ := strings.Cut(after, string(endMark))
		marked = rest
		var item, cell *string
		z := html.NewTokenizer(strings.NewReader(part))
		for z.Next() != html.ErrorToken {
			t := z.Token()
			switch isEnd := t.Type == html.EndTagToken; {
			case t.Type == html.TextToken:
				for _, into := range []*string{item, cell} {
					if into != nil {
						*into += t.Data
					}
				}
			case t.DataAtom == atom.A && !isEnd:
				for _, a := range t.Attr {
					if a.Key == "href" {
						m.Links = append(m.Links, a.Val)
					}
				}
			case t.DataAtom == atom.Li && !isEnd:
				m.Items = append(m.Items, "")
				item = &m.Items[len(m.Items)-1]
			case (t.DataAtom == atom.Td || t.DataAtom == atom.Th) && !isEnd:
				m.Cells = append(m.Cells, "")
				cell = &m.Cells[len(m.Cells)-1]
			case t.DataAtom == atom.Li:
				item = nil
			case t.DataAtom == atom.Td, t.DataAtom == atom.Th:
				cell = nil
			}
		}
	}
}

// labelled returns the text between a mark and the next end mark, without tags.
func labelled(marked string, begin rune) string {
	var b strings.Builder
	for {
		_, after, found := strings.Cut(marked, string(begin))
		if !found {
			return strings.TrimSpace(b.String())
		}
		part, rest, _ := strings.Cut(after, string(endMark))
		z := html.NewTokenizer(strings.NewReader(part))
		for z.Next() != html.ErrorToken {
			switch t := z.Token(); {
			case t.Type == html.TextToken:
				b.WriteString(t.Data)
			case !slices.Contains(inline, t.DataAtom):
				b.WriteByte('\n')
			}
		}
		b.WriteByte('\n')
		marked = rest
	}
}

// inline are the elements that do not end a line.
var inline = []atom.Atom{atom.A, atom.B, atom.Code, atom.Em, atom.I, atom.Span, atom.Strong, atom.Kbd, atom.Font,
	atom.Small, atom.Mark}
