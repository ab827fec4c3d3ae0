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
)

// language tells the language of a document's first text, for which the document may declare one; "" where neither tells.
func (p *Parser) language(text []byte, declared string) string {
	if !p.cfg.Language {
		return ""
	}
	return lang.Of(text, declared)
}

// declaredLanguage is the lang attribute of the html element.
func declaredLanguage(markup []byte) string {
	head := markup[:min(len(markup), 4<<10)]
	at := bytes.Index(head, []byte("<html"))
	if at < 0 {
		at = bytes.Index(head, []byte("<HTML"))
	}
	if at < 0 {
		return ""
	}
	tag := head[at:]
	tag = tag[:indexByte(tag, '>')]
	for {
		i := bytes.Index(tag, []byte("lang"))
		if i < 0 {
			return ""
		}
		value := bytes.TrimLeft(tag[i+len("lang"):], " \t\r\n")
		if isSpace(tag[i-1]) && len(value) > 0 && value[0] == '=' { // not xml:lang, which browsers pass over
			value = bytes.TrimLeft(value[1:], " \t\r\n\"'")
			end := bytes.IndexFunc(value, func(r rune) bool { return r != '-' && !isLetter(byte(r)) })
			if end >= 0 {
				value = value[:end]
			}
			return string(cut(value, maxLang))
		}
		tag = tag[i+len("lang"):]
	}
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
		l.take(bytes.TrimSpace(s.src[i:tag]), &p.text)
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
func (l *lead) take(text []byte, t *text) {
	switch {
	case len(text) >= minSentence:
		l.sentences = append(append(l.sentences, t.cut(text, maxLead)...), ' ')
	case len(text) > 0 && len(l.rest) < maxLead:
		l.rest = append(append(l.rest, text...), ' ')
	}
}
