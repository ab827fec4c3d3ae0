package maintext

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// A tongue is the vocabulary for pages in a language.
type tongue struct {
	lang, script                          string
	headlines, sentences, labels, authors []string
}

func loadTongues(t testing.TB) []tongue {
	data, err := os.ReadFile("testdata/prose.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []tongue
	for line := range strings.Lines(string(data)) {
		key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if key == "lang" {
			lang, script, _ := strings.Cut(rest, " ")
			all = append(all, tongue{lang: lang, script: script})
			continue
		}
		if len(all) == 0 {
			continue
		}
		w := &all[len(all)-1]
		switch key {
		case "h":
			w.headlines = strings.Split(rest, "|")
		case "s":
			w.sentences = append(w.sentences, rest)
		case "l":
			w.labels = strings.Split(rest, "|")
		case "a":
			w.authors = strings.Split(rest, "|")
		}
	}
	return all
}

// A piece is a piece of a page's main text, as HTML and as text.
type piece struct{ html, text string }

// A generator generates the words of a page. All randomness comes from dice.
type generator struct {
	tongue
	dice *rand.Rand
}

func (w *generator) pick(from []string) string { return from[w.dice.IntN(len(from))] }

// space returns the separator of sentences.
func (w *generator) space() string {
	switch w.script {
	case "Hans", "Hant", "Jpan":
		return ""
	}
	return " "
}

func (w *generator) prose(sentences int) string {
	order := w.dice.Perm(len(w.sentences))
	var parts []string
	for i := range sentences {
		parts = append(parts, w.sentences[order[i%len(order)]])
	}
	return strings.Join(parts, w.space())
}

// paragraph returns a p, sometimes with inline markup.
func (w *generator) paragraph() piece {
	text := w.prose(2 + w.dice.IntN(4))
	runes := []rune(text)
	from := w.dice.IntN(len(runes) / 2)
	to := from + 1 + w.dice.IntN(8)
	open, shut := "", ""
	switch w.dice.IntN(5) {
	case 0:
		open, shut = "<b>", "</b>"
	case 1:
		open, shut = `<a href="/topic/12">`, "</a>"
	case 2:
		open, shut = `<span class="hl">`, "</span>"
	}
	return piece{"<p>" + string(runes[:from]) + open + string(runes[from:to]) + shut + string(runes[to:]) + "</p>\n", text}
}

func (w *generator) list() piece {
	var html, text strings.Builder
	for range 3 + w.dice.IntN(3) {
		s := w.pick(w.sentences)
		html.WriteString("<li>" + s + "</li>\n")
		text.WriteString(s + "\n")
	}
	return piece{"<ul>\n" + html.String() + "</ul>\n", text.String()}
}

func (w *generator) table() piece {
	var html, text strings.Builder
	for range 3 {
		a, b := w.pick(w.headlines), w.pick(w.sentences)
		html.WriteString("<tr><td>" + a + "</td><td>" + b + "</td></tr>\n")
		text.WriteString(a + "\n" + b + "\n")
	}
	return piece{"<table class=\"data\">\n" + html.String() + "</table>\n", text.String()}
}

// body returns the main text: paragraphs, with a subheading, a quotation, a list or a table among them.
func (w *generator) body(paragraphs int) []piece {
	var out []piece
	for i := range paragraphs {
		if i > 0 && i < paragraphs-1 {
			switch w.dice.IntN(9) {
			case 0:
				h := w.pick(w.headlines)
				out = append(out, piece{"<h2>" + h + "</h2>\n", h})
			case 1:
				q := w.prose(1)
				out = append(out, piece{"<blockquote><p>" + q + "</p></blockquote>\n", q})
			case 2:
				out = append(out, w.list())
			case 3:
				out = append(out, w.table())
			}
		}
		out = append(out, w.paragraph())
	}
	return out
}

func join(blocks []piece) (html, text string) {
	var h, t strings.Builder
	for _, b := range blocks {
		h.WriteString(b.html)
		t.WriteString(b.text + "\n")
	}
	return h.String(), t.String()
}
