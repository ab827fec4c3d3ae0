package parse

import (
	"bytes"

	"kumo/internal/lang"
)

const (
	maxLead     = 1 << 10  // bytes of text that are enough to tell a language by
	leadWindow  = 64 << 10 // bytes of a document in which they are looked for
	minSentence = 32       // bytes between two tags from which on text is more than a name or a button
	fewWords    = 200      // bytes of sentences below which names and buttons have to do
	fewLetters  = 20       // bytes of text that say nothing of a language
)

// language tells the language of a document's first text, "" where there is hardly any.
func (p *Parser) language(text []byte) string {
	if !p.cfg.Language || len(text) < fewLetters {
		return ""
	}
	return lang.Detect(text).Lang
}

// A lead is the first text of a document, for telling its language. Sentences come first, since the names and buttons that many
// pages begin with are often in another language.
type lead struct{ sentences, rest []byte }

// lead reads the first text of the markup in src, which is the document as the parser reads it.
func (p *Parser) lead(src []byte, xml bool) []byte {
	l := &p.first
	l.sentences, l.rest = l.sentences[:0], append(l.rest[:0], p.title...)
	s := scanner{src: src[:min(len(src), leadWindow)], xml: xml}
	for i := 0; len(l.sentences) < maxLead; {
		tag := index(s.src, i, '<')
		l.take(bytes.TrimSpace(s.src[i:tag]))
		if tag+1 >= len(s.src) {
			break
		}
		i, _ = s.construct(tag + 1)
	}
	if len(l.sentences) < fewWords {
		l.sentences = append(append(l.sentences, ' '), l.rest...)
	}
	p.text.reset()
	return p.text.attr(cut(l.sentences, maxLead+minSentence))
}

// take takes the text between two tags.
func (l *lead) take(text []byte) {
	switch {
	case len(text) >= minSentence:
		l.sentences = append(append(l.sentences, text[:min(len(text), maxLead)]...), ' ')
	case len(text) > 0 && len(l.rest) < maxLead:
		l.rest = append(append(l.rest, text...), ' ')
	}
}
