package parse

import (
	"bytes"

	"kumo/internal/content/lang"
)

const (
	maxLead     = 1 << 10  // bytes of text that are enough to tell a language by
	leadWindow  = 64 << 10 // bytes of a document in which they are looked for
	minSentence = 32       // bytes between two tags from which on text is more than a name or a button
	minText     = 200      // bytes of sentences below which names and buttons have to do
)

// language tells the language of a document's first text, for which the document may declare one; "" where neither
// tells.
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

// A lead is the first text of a document, for telling its language. Sentences come first, since the names and buttons
// that many pages begin with are often in another language. The scanner gathers it on its way.
type lead struct {
	decoder         *text
	sentences, rest []byte
	ends            []int // of the pieces in the rest
}

func (l *lead) reset(of *text) {
	*l = lead{decoder: of, sentences: l.sentences[:0], rest: l.rest[:0], ends: l.ends[:0]}
}

// gatherText takes the text between two tags, until there is enough.
func (s *scanner) gatherText(from, to int) {
	if from >= leadWindow || !s.lead.add(bytes.TrimSpace(s.src[from:min(to, leadWindow)])) {
		s.lead = nil
	}
}

// add takes the text between two tags. It reports whether it wants more.
func (l *lead) add(text []byte) (more bool) {
	switch {
	case len(text) >= minSentence:
		l.sentences = append(append(l.sentences, l.decoder.cut(text, maxLead)...), ' ')
	case len(text) > 0 && len(l.rest) < maxLead:
		l.rest = append(append(l.rest, text...), ' ')
		l.ends = append(l.ends, len(l.rest))
	}
	return len(l.sentences) < maxLead
}

// replacement is the first text of the document that was read, and of its title where there are few sentences.
func (p *Parser) lead() []byte {
	l := &p.first
	if len(l.sentences) < minText {
		l.sentences = append(append(l.sentences, ' '), p.title...)
		l.sentences = append(l.sentences, l.restAfter(p.title)...)
	}
	p.text.reset()
	return p.text.attr(cut(l.sentences, maxLead+minSentence))
}

// restAfter is as much of the rest as there is room for behind the title.
func (l *lead) restAfter(title []byte) []byte {
	n := 0
	for _, end := range l.ends {
		if len(title)+n >= maxLead {
			break
		}
		n = end
	}
	return l.rest[:n]
}
