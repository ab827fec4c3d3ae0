package maintext

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"
)

// A sample is a page generated from a seed, and the expected result.
type sample struct {
	kind, script, url, html string
	want                    Text
}

// A template lays out a page's blocks as a kind of site does. It returns the content of body and the main text; nothing
// else in it is main text.
type template struct {
	kind string
	lay  func(w *generator, p *plan) (body, text string)
}

var templates = []template{
	{"news", news}, {"blog", blog}, {"forum", forum}, {"docs", docs}, {"wiki", wiki}, {"brief", brief}, {"lines", lines},
	{"old", old},
}

// A plan has the data that head and body of a page share.
type plan struct {
	headline, site, author string
	date                   time.Time
	paragraphs             int
}

// named matches attributes that describe the purpose of elements. A third of the pages have generated class names
// instead.
var named = regexp.MustCompile(` (class|id|role)="[^"]*"`)

func makeSample(w tongue, tpl template, seed uint64) sample {
	m := &generator{w, rand.New(rand.NewPCG(seed, 1))}
	p := &plan{
		headline: m.pick(w.headlines), site: "Kurier 24", author: m.pick(w.authors), paragraphs: 3 + m.dice.IntN(10),
		date: time.Date(2004+m.dice.IntN(20), time.Month(1+m.dice.IntN(12)), 1+m.dice.IntN(28), 9, 30, 0, 0, time.UTC),
	}
	body, text := tpl.lay(m, p)
	if m.dice.IntN(3) == 0 {
		body = named.ReplaceAllStringFunc(body, func(string) string {
			return fmt.Sprintf(` class="css-%x"`,
				m.dice.IntN(1<<20))
		})
	}
	title := p.headline + " | " + p.site
	s := sample{kind: tpl.kind, script: w.script, url: "https://www.example.org/a/" + fmt.Sprint(seed)}
	s.want = Text{Title: title, Headline: p.headline, Text: text, Published: p.date.Format(time.DateOnly),
		Author: p.author, Lang: w.lang}
	s.html = fmt.Sprintf("<!DOCTYPE html>\n<html lang=%q>\n<head><meta charset=\"utf-8\"><title>%s</title>\n%s"+
		"<style>.nav{float:left}.x{color:#333}</style><script>window.dataLayer=[];var "+
		"a=1<2;</script></head>\n<body>%s</body></html>",
		w.lang, title, m.meta(p), body)
	return s
}

// meta writes author and date in one of the common ways.
func (w *generator) meta(p *plan) string {
	switch w.dice.IntN(3) {
	case 0:
		return fmt.Sprintf(`<meta property="og:title" content="%s"><meta name="author" content="%s">`+
			`<meta property="article:published_time" content="%s">`, p.headline, p.author, p.date.Format(time.RFC3339)) + "\n"
	case 1:
		return fmt.Sprintf(`<script type="application/ld+json">{"@context":"https://schema.org","@type":"NewsArticle","headline":"%s",`+
			`"datePublished":"%s","author":{"@type":"Person","name":"%s"}}</script>`, p.headline, p.date.Format(time.RFC3339),
			p.author) + "\n"
	default:
		return fmt.Sprintf(`<meta name="author" content="%s"><meta name="date" content="%s">`, p.author,
			p.date.Format(time.DateOnly)) + "\n"
	}
}

func (w *generator) nav() string {
	var b strings.Builder
	b.WriteString("<header class=\"site-header\"><a href=\"/\" class=\"logo\">Kurier 24</a>\n<nav class=\"nav " +
		"main-menu\"><ul>\n")
	for i, l := range w.labels {
		fmt.Fprintf(&b, "<li><a href=\"/s/%d\">%s</a></li>\n", i, l)
	}
	return b.String() + "</ul></nav></header>\n"
}

func (w *generator) cookies() string {
	return `<div id="cookie-banner" class="cookie-consent" role="dialog"><p>` + w.prose(1) + `</p><button>` +
		w.pick(w.labels) +
		`</button> <a href="/privacy">` + w.labels[8] + "</a></div>\n"
}

func (w *generator) related() string {
	var b strings.Builder
	b.WriteString("<aside class=\"sidebar widget-area\"><h3>" + w.labels[10] + "</h3><ul>\n")
	for i := range 5 {
		fmt.Fprintf(&b, "<li><a href=\"/a/%d\">%s</a></li>\n", i, w.pick(w.headlines))
	}
	return b.String() + "</ul><div class=\"ad advert\"><a href=\"https://ads.example/1\">" + w.pick(w.labels) +
		"</a></div></aside>\n"
}

func (w *generator) comments() string {
	var b strings.Builder
	b.WriteString("<section id=\"comments\" class=\"comments-area\"><h3>" + w.pick(w.labels) +
		"</h3><ol class=\"comment-list\">\n")
	for range 2 + w.dice.IntN(3) {
		fmt.Fprintf(&b, "<li class=\"comment\"><div class=\"comment-author\">%s</div><div "+
			"class=\"comment-content\"><p>%s</p></div></li>\n",
			w.pick(w.authors), w.prose(1))
	}
	return b.String() + "</ol></section>\n"
}

func (w *generator) footer() string {
	return "<footer class=\"site-footer\"><p>© 2021 Kurier 24</p><ul><li><a href=\"/imprint\">" + w.labels[6] +
		"</a></li><li><a href=\"/contact\">" + w.labels[5] + "</a></li><li><a href=\"/privacy\">" + w.labels[8] +
		"</a></li></ul></footer>\n"
}

func (w *generator) share() string {
	return "<div class=\"share social\"><a href=\"#fb\">" + w.labels[11] + "</a> <a href=\"#tw\">" + w.labels[7] +
		"</a></div>\n"
}

func news(w *generator, p *plan) (string, string) {
	html, text := join(w.body(p.paragraphs))
	wrap := w.pick([]string{`<div class="article-body">%s</div>`, `<div itemprop="articleBody">%s</div>`,
		`<div class="td-post-content">%s</div>`, "%s", `<section class="story__text">%s</section>`})
	return w.nav() + w.cookies() + "<main><article>\n<h1>" + p.headline + "</h1>\n<div class=\"byline\">" + p.author +
		" <time datetime=\"" + p.date.Format(time.DateOnly) + "\">" + p.date.Format("2.1.2006") + "</time></div>\n" +
		w.share() +
		"<figure><img src=\"/i.jpg\" alt=\"\"><figcaption>" + w.pick(w.labels) + "</figcaption></figure>\n" +
		fmt.Sprintf(wrap, html) + w.share() + "</article></main>\n" + w.related() + w.comments() + w.footer(), text
}

func blog(w *generator, p *plan) (string, string) {
	html, text := join(w.body(p.paragraphs))
	return w.nav() + "<div id=\"content\" class=\"site-content\"><div class=\"post hentry\"><h1 class=\"entry-title\">" +
		p.headline +
		"</h1><div class=\"entry-meta\"><span class=\"author vcard\">" + p.author +
		"</span></div>\n<div class=\"entry-content\">" + html +
		"</div>\n<div class=\"post-tags\"><a href=\"/tag/1\">" + w.labels[4] + "</a>, <a href=\"/tag/2\">" + w.labels[3] +
		"</a></div></div>\n" +
		w.comments() + "</div>\n" + w.related() + w.cookies() + w.footer(), text
}

// forum has every post as main text, but not the boxes about posters.
func forum(w *generator, p *plan) (string, string) {
	var b, text strings.Builder
	b.WriteString(w.nav() + "<div id=\"page-body\"><h1 class=\"topic-title\">" + p.headline + "</h1>\n")
	for i := range 3 + w.dice.IntN(4) {
		html, words := join([]piece{w.paragraph(), w.paragraph()})
		text.WriteString(words)
		fmt.Fprintf(&b, "<div id=\"p%d\" class=\"post\"><div class=\"postprofile\"><a href=\"/u/%d\">%s</a></div>\n"+
			"<div class=\"postbody\"><div class=\"content\">%s</div></div></div>\n", i, i, w.pick(w.authors), html)
	}
	return b.String() + "</div>\n" + w.footer(), text.String()
}

func docs(w *generator, p *plan) (string, string) {
	blocks := w.body(p.paragraphs)
	code := "for i := 0; i < 10; i++ {\n\trun(i, verbose)\n}"
	blocks = append(blocks, piece{"<pre><code>" + strings.ReplaceAll(code, "<", "&lt;") + "</code></pre>\n", code},
		w.paragraph())
	html, text := join(blocks)
	return w.nav() + "<div class=\"document\"><div class=\"documentwrapper\"><div class=\"bodywrapper\"><div " +
		"class=\"body\" role=\"main\">\n<h1>" +
		p.headline + "</h1>\n" + html + "</div></div></div>\n<div class=\"sphinxsidebar\" role=\"navigation\"><ul><li><a " +
		"href=\"#a\">" +
		w.pick(w.headlines) + "</a></li><li><a href=\"#b\">" + w.labels[9] + "</a></li></ul></div></div>\n" + w.footer(), text
}

func wiki(w *generator, p *plan) (string, string) {
	html, text := join(w.body(p.paragraphs))
	return "<div id=\"content\" class=\"mw-body\" role=\"main\"><h1 id=\"firstHeading\" class=\"firstHeading\">" +
		p.headline +
		"</h1>\n<div id=\"bodyContent\"><div id=\"mw-content-text\"><div class=\"mw-parser-output\">\n" + html +
		"</div></div></div>\n<div id=\"catlinks\" class=\"catlinks\"><a href=\"/c/1\">" + w.labels[4] +
		"</a></div></div>\n<div id=\"mw-navigation\">" +
		w.nav() + "</div>" + w.footer(), text
}

// brief is a page with few words, such as a notice or the caption of a picture.
func brief(w *generator, p *plan) (string, string) {
	text := w.prose(2)
	box := w.pick([]string{"<main><h1>%s</h1><p>%s</p></main>\n", "<div class=\"wrap\"><h1>%s</h1><div " +
		"class=\"text\">%s</div></div>\n",
		"<article><h1>%s</h1><p>%s</p></article>\n"})
	return w.nav() + w.cookies() + fmt.Sprintf(box, p.headline, text) + w.footer(), text
}

// lines has no paragraphs: its lines are separated by br in a div without a telling class.
func lines(w *generator, p *plan) (string, string) {
	var b, text strings.Builder
	for range p.paragraphs {
		s := w.prose(1 + w.dice.IntN(3))
		b.WriteString(s + "<br><br>\n")
		text.WriteString(s + "\n")
	}
	return w.nav() + "<div class=\"c12\"><h1>" + p.headline + "</h1>\n<div class=\"c3\">" + b.String() + "</div></div>\n" +
		w.related() +
		w.footer(), text.String()
}

// old is laid out with tables and font elements.
func old(w *generator, p *plan) (string, string) {
	html, text := join(w.body(p.paragraphs))
	var menu strings.Builder
	for i, l := range w.labels {
		fmt.Fprintf(&menu, "<a href=\"p%d.html\"><font size=\"2\">%s</font></a><br>\n", i, l)
	}
	return "<table width=\"100%\" border=0><tr><td colspan=2 bgcolor=\"#ccc\"><font size=5>Kurier " +
		"24</font></td></tr>\n<tr><td width=150 valign=top>" +
		menu.String() + "</td><td valign=top><center><h1>" + p.headline + "</h1></center>\n" + html +
		"</td></tr><tr><td colspan=2><hr><a href=\"index.html\">" + w.labels[0] + "</a> | <a href=\"mail.html\">" +
		w.labels[5] +
		"</a></td></tr></table>\n", text
}
