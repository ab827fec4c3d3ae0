// Package trapweb serves a site of honest pages and endless traps, and scores a crawl of it. Only tests use it.
package trapweb

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"kumo/internal/lab/dice"
)

// Domain is the domain of a [Web]'s hosts. Every name in it is a host.
const Domain = "traps.test"

// A Web is a site of honest pages and endless traps: a calendar, paths that repeat, session IDs in paths and in
// queries, facets in any order, and wildcard host names. It serves them over HTTP and keeps a score. Honest pages are
// documents in sections, numbered items with much identical text, a gallery whose pages differ in one image, and lists
// that differ in their links.
type Web struct {
	seed  uint64
	pages int

	mu    sync.Mutex // guards the following fields
	fresh map[string]bool
	score Score
}

// A Score is what the servers of a [Web] saw.
type Score struct {
	Honest int            `json:"honest"` // honest pages fetched
	Again  int            `json:"again"`  // repeated fetches of a page
	Vain   map[string]int `json:"vain"`   // fetches of pages without new text, by trap
	First  int            `json:"first"`  // first fetches of a text that only a trap has
	Robots int            `json:"robots"` // fetches of robots.txt, which does not exist
}

// Wasted returns the number of page fetches that brought nothing new.
func (s Score) Wasted() (n int) {
	for _, of := range s.Vain {
		n += of
	}
	return n + s.Again
}

// Waste returns the fraction of page fetches that brought nothing new.
func (s Score) Waste() float64 {
	all := s.Honest + s.First + s.Wasted()
	return float64(s.Wasted()) / float64(max(all, 1))
}

func (s Score) String() string {
	return fmt.Sprintf("%d honest pages, %d texts of traps, %d fetches in vain (%.1f %%: %v, %d twice), %d times "+
		"robots.txt", s.Honest,
		s.First, s.Wasted(), 100*s.Waste(), s.Vain, s.Again, s.Robots)
}

// New returns the web of a seed, with the given number of honest pages.
func New(seed uint64, pages int) *Web {
	return &Web{seed: seed, pages: pages, fresh: map[string]bool{}, score: Score{Vain: map[string]int{}}}
}

// Score returns the score so far.
func (t *Web) Score() Score {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.score
	s.Vain = maps.Clone(s.Vain)
	return s
}

// ServeHTTP answers for any host of the domain.
func (t *Web) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		t.mu.Lock()
		t.score.Robots++
		t.mu.Unlock()
		http.NotFound(w, r)
		return
	}
	p := t.page(r)
	if p == nil {
		http.NotFound(w, r)
		return
	}
	t.count(p)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!DOCTYPE html><html lang=en><title>%s</title>%s<main><h1>%[1]s</h1>%s</main>%s", p.title, t.menu(r),
		p.main, footer)
}

func (t *Web) count(p *trapPage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch first := !t.fresh[p.text]; {
	case first && p.trap == "":
		t.score.Honest++
	case first:
		t.score.First++
	case p.trap == "":
		t.score.Again++
	default:
		t.score.Vain[p.trap]++
	}
	t.fresh[p.text] = true
}

// A trapPage is a page: the name of its text, and its trap ("" for an honest page).
type trapPage struct{ text, trap, title, main string }

const footer = `<footer>All of this was made up by a machine for other machines to read, and nobody is meant to learn anything
from it but how a crawler goes about places where it could stay for ever.</footer>`

// menu returns links to all parts of the site.
func (t *Web) menu(r *http.Request) string {
	www := "//www." + Domain + port(r)
	var b strings.Builder
	b.WriteString("<nav><ul>")
	for _, to := range []string{"/", "/calendar/2026/11", "/maze/", "/s/" + t.id(0) + "/0", "/view?item=0&sid=" + t.id(1),
		"/shop/"} {
		fmt.Fprintf(&b, "<li><a href=\"%s%s\">A place of this site that %s names</a>", www, to, to)
	}
	fmt.Fprintf(&b, "<li><a href=\"//%s.%s%s/\">Friends</a></ul></nav>", t.word(dice.Hash(t.seed, 7)), Domain, port(r))
	return b.String()
}

// port returns the port of a request's host, with the colon.
func port(r *http.Request) string {
	if at := strings.LastIndexByte(r.Host, ':'); at >= 0 {
		return r.Host[at:]
	}
	return ""
}

func (t *Web) page(r *http.Request) *trapPage {
	host, _, _ := strings.Cut(r.Host, ":")
	path := r.URL.Path
	seg := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case host != "www."+Domain:
		return t.anyHost(r)
	case seg[0] == "calendar" && len(seg) == 3:
		return t.calendar(seg[1], seg[2])
	case seg[0] == "maze":
		return &trapPage{"maze", "loop", "The maze", t.prose(dice.Hash(t.seed, 11), 120) +
			"<a href=left/>left</a> <a href=right/>right</a>"}
	case seg[0] == "s" && len(seg) == 3:
		return t.session(seg[2], func(to int, id string) string { return fmt.Sprintf("/s/%s/%d", id, to) }, path,
			"session in the path")
	case seg[0] == "view":
		return t.session(r.FormValue("item"), func(to int, id string) string {
			return fmt.Sprintf("/view?item=%d&sid=%s", to, id)
		},
			r.URL.RawQuery, "session in the query")
	case seg[0] == "shop":
		return t.facets(path)
	}
	return t.honest(r)
}

// anyHost returns the single page that all other hosts have.
func (t *Web) anyHost(r *http.Request) *trapPage {
	var b strings.Builder
	b.WriteString(t.prose(dice.Hash(t.seed, 12), 150))
	for i := range 5 {
		fmt.Fprintf(&b, "<a href=\"//%s.%s%s/\">a friend</a> ", t.word(dice.Hash(t.seed, 13, uint64(i), hashText(r.Host))),
			Domain, port(r))
	}
	return &trapPage{"friends", "hosts", "Friends", b.String()}
}

func (t *Web) calendar(year, month string) *trapPage {
	y, err := strconv.Atoi(year)
	m, err2 := strconv.Atoi(month)
	if err != nil || err2 != nil || m < 1 || m > 12 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<p>All that happens in this month. %s<table>", t.prose(dice.Hash(t.seed, 14), 60))
	for d := range 30 {
		fmt.Fprintf(&b, "<td>%d no events", d+1)
	}
	next, last := y*12+m, y*12+m-2
	fmt.Fprintf(&b, "</table><a href=/calendar/%d/%d>next month</a> <a href=/calendar/%d/%d>month before</a>", next/12,
		next%12+1,
		last/12, last%12+1)
	return &trapPage{"calendar", "calendar", fmt.Sprintf("Events of %s %s", month, year), b.String()}
}

// session returns one of ten texts. Each of its links has a new session ID.
func (t *Web) session(item string, url func(int, string) string, own, trap string) *trapPage {
	n, err := strconv.Atoi(item)
	if err != nil || n < 0 || n > 9 {
		return nil
	}
	var b strings.Builder
	b.WriteString(t.prose(dice.Hash(t.seed, 15, uint64(n), uint64(len(trap))), 200))
	for i := range 10 {
		fmt.Fprintf(&b, "<li><a href=\"%s\">Item %d</a>", url(i, t.id(dice.Hash(hashText(own), uint64(i)))), i)
	}
	return &trapPage{trap + item, trap, "Item " + item, b.String()}
}

var facetNames = [...]string{"red", "blue", "green", "small", "large", "cotton", "silk", "wool", "new", "sale",
	"summer", "winter"}

// facets returns a list of goods. Each step narrows it, but the list stays the same.
func (t *Web) facets(path string) *trapPage {
	var b strings.Builder
	b.WriteString(t.prose(dice.Hash(t.seed, 16), 220))
	for _, name := range facetNames {
		if !strings.HasSuffix(path, "/"+name+"/") {
			fmt.Fprintf(&b, "<li><a href=%s/>%[1]s</a>", name)
		}
	}
	return &trapPage{"shop", "facets", "The shop", b.String()}
}

// honestKinds lists the URL prefixes of honest pages, with their share in twenty pages.
var honestKinds = [...]struct {
	share int
	url   func(t *Web, n int) string
}{
	{14, func(t *Web, n int) string {
		return fmt.Sprintf("/docs/%s/%s-%d.html", t.word(dice.Hash(t.seed, 20, uint64(n/60))),
			t.word(dice.Hash(t.seed, 21, uint64(n))), n)
	}},
	{3, func(_ *Web, n int) string { return fmt.Sprintf("/item/%d/", n) }},
	{2, func(_ *Web, n int) string { return fmt.Sprintf("/gallery/%d", n) }},
	{1, func(_ *Web, n int) string { return fmt.Sprintf("/archive?page=%d", n) }},
}

func honestKind(n int) int {
	for kind, at := 0, n%20; ; kind++ {
		if at -= honestKinds[kind].share; at < 0 {
			return kind
		}
	}
}

func (t *Web) honestURL(n int) string {
	if n == 0 {
		return "/"
	}
	return honestKinds[honestKind(n)].url(t, n)
}

// honest returns the page whose number is in a URL.
func (t *Web) honest(r *http.Request) *trapPage {
	digits := strings.TrimSuffix(r.URL.Path, ".html")
	if r.URL.RawQuery != "" {
		digits = r.FormValue("page")
	}
	digits = strings.Trim(digits, "/")
	digits = digits[strings.LastIndexAny(digits, "/-")+1:]
	n, err := strconv.Atoi(digits)
	if r.URL.Path == "/" {
		n, err = 0, nil
	}
	if err != nil || n < 0 || n >= t.pages || t.honestURL(n) != r.URL.RequestURI() {
		return nil
	}
	about := dice.Hash(t.seed, 22, uint64(n))
	p := &trapPage{text: "honest " + strconv.Itoa(n), title: t.word(about) + " " + t.word(about+1)}
	same := t.prose(dice.Hash(t.seed, 23), 80)
	switch honestKind(n) {
	case 0:
		p.main = t.prose(about, 150+int(about>>40)%400)
	case 1:
		p.main = same + t.prose(about, 90)
	case 2:
		p.main = same + fmt.Sprintf("<img src=/pictures/%d.jpg>", n)
	default:
		p.main = same
	}
	var links strings.Builder
	links.WriteString("<ul>")
	for to := 8*n + 1; to <= 8*n+8 && to < t.pages; to++ {
		t.link(&links, to)
	}
	for i := range uint64(16) { // lists have their own links
		t.link(&links, int(dice.Hash(t.seed, 24, uint64(n), i)%uint64(t.pages)))
	}
	p.main += links.String() + "</ul>"
	return p
}

func (t *Web) link(b *strings.Builder, to int) {
	about := dice.Hash(t.seed, 22, uint64(to))
	fmt.Fprintf(b, "<li><a href=\"%s\">%s %s %s</a>", t.honestURL(to), t.word(about), t.word(about+1), t.word(about+2))
}

func (t *Web) prose(from uint64, words int) string {
	var b strings.Builder
	d := dice.Dice(from)
	b.WriteString("<p>")
	for i := range words {
		b.WriteString(t.word(dice.Hash(t.seed, 30, uint64(d.Ranked(4000)))))
		if i%12 == 11 {
			b.WriteByte('.')
		}
		b.WriteByte(' ')
	}
	b.WriteString("</p>")
	return b.String()
}

func (t *Web) word(from uint64) string {
	const consonants, vowels = "bdfghklmnprstvz", "aeiou"
	d := dice.Dice(from)
	var b []byte
	for range 2 + d.Below(2) {
		b = append(b, consonants[d.Below(len(consonants))], vowels[d.Below(len(vowels))])
	}
	return string(b)
}

func (t *Web) id(from uint64) string { return fmt.Sprintf("%016x", dice.Hash(t.seed, 31, from)) }

func hashText(s string) uint64 {
	h := uint64(0)
	for i := range len(s) {
		h = dice.Hash(h, uint64(s[i]))
	}
	return h
}
