package parse

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"kumo/internal/base/page"
)

// A pageWriter writes typical pages: a head with scripts and meta elements, menus, articles with links, images and
// inline markup, cards, a footer with more scripts. The text is in a language with characters beyond ASCII.
type pageWriter struct {
	strings.Builder
	*rand.Rand
	words []string
}

var (
	latinWords = "für größe können über straße schön die der und nicht mit ist das auch eine wird nach später " +
		"möchte heute haben zwischen Jahre"
	cyrillicWords = "библиотека и не в каждый вечер на девять часов кроме воскресенья городской новости читать далее с " +
		"по для который также"
)

func newPageWriter(seed uint64, words string) *pageWriter {
	return &pageWriter{Rand: rand.New(rand.NewPCG(seed, 7)), words: strings.Fields(words)}
}

func (w *pageWriter) f(format string, args ...any) { fmt.Fprintf(w, format, args...) }

func (w *pageWriter) text(n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(w.words[w.IntN(len(w.words))])
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

func (w *pageWriter) href() string {
	switch w.IntN(6) {
	case 0:
		return fmt.Sprintf("https://www.example.org/section-%d/story-%d.html", w.IntN(9), w.IntN(1000))
	case 1:
		return fmt.Sprintf("story-%d.html?page=%d&amp;sort=date", w.IntN(1000), w.IntN(9))
	case 2:
		return fmt.Sprintf("/tags/%d/", w.IntN(30))
	}
	return fmt.Sprintf("/2024/%02d/%d-some-title-of-it/", 1+w.IntN(12), w.IntN(1000))
}

func (w *pageWriter) head() {
	w.f("<!DOCTYPE html>\n<html lang=\"de\">\n<head>\n<meta charset=\"utf-8\">\n<title>%s &amp; mehr</title>\n", w.text(6))
	w.f("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"description\" "+
		"content=\"%s\">\n", w.text(20))
	w.f("<meta property=\"og:title\" content=\"%s\">\n<meta property=\"og:image\" "+
		"content=\"https://img.example.org/a.jpg\">\n", w.text(6))
	w.f("<link rel=\"canonical\" href=\"https://www.example.org/a/b\">\n<link rel=\"stylesheet\" " +
		"href=\"/css/main.css?v=3\">\n")
	w.f("<script>window.dataLayer=window.dataLayer||[];function g(){dataLayer.push(arguments)}if(1<2&&3>2){g('js',new " +
		"Date())}</script>\n")
	w.f("<!-- a comment <a href=x>of</a> somebody -->\n<style>.a{color:red}.b>.c{margin:0 " +
		"auto}</style>\n</head>\n<body class=\"home page\">\n")
}

func (w *pageWriter) article(links int) {
	w.f("<article class=\"post post-%d\" id=\"p%d\" data-id=\"%d\">\n<h2 class=\"entry-title\">%s</h2>\n", w.IntN(99),
		w.IntN(99), w.IntN(99), w.text(5))
	for range links {
		w.f("  <p class=\"text\">%s <a class=\"link link--inline\" href=\"%s\">%s</a> %s <strong>%s</strong>, %s.</p>\n",
			w.text(5+w.IntN(25)), w.href(), w.text(2), w.text(5+w.IntN(20)), w.text(2), w.text(w.IntN(9)))
	}
	w.f("  <img class=\"img\" src=\"/img/%d.jpg\" alt=\"%s\" width=\"300\" height='200' loading=lazy>\n</article>\n",
		w.IntN(99), w.text(3))
}

func (w *pageWriter) list() {
	w.f("<ul class=\"menu\">\n")
	for range 3 + w.IntN(5) {
		w.f("  <li class=\"menu-item\"><span class=\"label\" style=\"color: red\">%s</span></li>\n", w.text(1+w.IntN(4)))
	}
	w.f("</ul>\n<div class=\"wrap\"><div class=\"inner\"><svg viewBox=\"0 0 8 8\"><path d=\"M0 0L8 " +
		"8\"/></svg><br></div></div>\n")
}

// page returns a page of about the given size.
func (w *pageWriter) page(size int) []byte {
	w.head()
	for w.Len() < size-400 {
		w.list()
		w.article(2)
		w.f("<script type=\"text/javascript\">var x%d = {\"a\": 1, \"b\": \"<b>\"}; x.y = x.a < 3;</script>\n", w.IntN(99))
	}
	w.f("<footer><p>&copy; 2024 %s</p></footer>\n</body>\n</html>\n", w.text(4))
	return []byte(w.String())
}

// listing returns a page of long lists, with a paragraph of links.
func (w *pageWriter) listing(size, links int) []byte {
	w.f("<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<title>%s</title>\n</head>\n<body>\n<p>", w.text(2))
	for range links {
		w.f("<a href=\"%s\">%s </a>\n", w.href(), w.text(2))
	}
	for w.f("</p>\n"); w.Len() < size; {
		w.f("<li class=\"item\"><span>%s </span></li>\n", w.text(3+w.IntN(10)))
	}
	return []byte(w.String())
}

var wholePages = []struct {
	name string
	body []byte
}{
	{"8K", newPageWriter(1, latinWords).page(8 << 10)},
	{"33K", newPageWriter(2, latinWords).page(33 << 10)},
	{"242K", newPageWriter(3, latinWords).page(242 << 10)},
	{"33K-cyrillic", newPageWriter(4, cyrillicWords).page(33 << 10)},
	{"33K-listing", newPageWriter(5, latinWords).listing(33<<10, 40)},
}

var crawlConfig = Config{PlainText: true, Language: true}

// BenchmarkPage parses pages as a crawl does.
func BenchmarkPage(b *testing.B) {
	for _, wp := range wholePages {
		b.Run(wp.name, func(b *testing.B) {
			resp := &page.Response{URL: testURL, Status: 200, Body: wp.body, Header: http.Header{"Content-Type": {"text/html"}}}
			p, pg := New(crawlConfig), new(page.Page)
			if err := p.Parse(resp, pg); err != nil { // the first page of the process decompresses the language model
				b.Fatal(err)
			}
			b.SetBytes(int64(len(wp.body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Parse(resp, pg); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(pg.Links)), "links")
		})
	}
}

// BenchmarkPages parses many pages in turn, too many for the branch predictor: each page has a new structure.
func BenchmarkPages(b *testing.B) {
	var responses []*page.Response
	for seed := range uint64(64) {
		body := newPageWriter(seed, latinWords).page(33 << 10)
		responses = append(responses, &page.Response{URL: testURL, Status: 200, Body: body,
			Header: http.Header{"Content-Type": {"text/html"}}})
	}
	for _, c := range []struct {
		name string
		cfg  Config
	}{{"crawl", crawlConfig}, {"links", Config{}}} {
		b.Run(c.name, func(b *testing.B) {
			p, pg, n := New(c.cfg), new(page.Page), 0
			b.SetBytes(33 << 10)
			for b.Loop() {
				if err := p.Parse(responses[n%len(responses)], pg); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}
