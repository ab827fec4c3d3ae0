package parse

import (
	"bytes"

	"kumo/internal/content/lang"
)

const (
	maxLead     = 1 << 10  // bytes of text that suffice to detect a language
	leadWindow  = 64 << 10 // bytes of a document that are searched for them
	minSentence = 32       // minimum bytes between two tags for a text that is more than a name or a button
	minText     = 200      // bytes of sentences below which shorter texts are also used
)

// language detects the language of a document's first text. declared is the language that the document declares. The
// result is "" if the language is unknown.
func (p *Parser) language(text []byte, declared string) string {
	if !p.cfg.Language {
		return ""
	}
	return lang.Of(text, declared)
}

// declaredLanguage returns the lang attribute of the html element.
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
		if isSpace(tag[i-1]) && len(value) > 0 && value[0] == '=' { // not xml:lang, which browsers ignore
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

// A lead is the beginning of a document's text, for language detection. It prefers sentences, since the names and
// buttons at the beginning of many pages are often in another language. The scanner collects it.
type lead struct {
	decoder         *text
	sentences, rest []byte
	ends            []int // of the pieces in rest
}

func (l *lead) reset(of *text) {
	*l = lead{decoder: of, sentences: l.sentences[:0], rest: l.rest[:0], ends: l.ends[:0]}
}

// gatherText adds the text between two tags to the lead, until there is enough.
func (s *scanner) gatherText(from, to int) {
	if from >= leadWindow || !s.lead.add(bytes.TrimSpace(s.src[from:min(to, leadWindow)])) {
		s.lead = nil
	}
}

// add adds the text between two tags. It reports whether more is needed.
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

// lead returns the beginning of the document's text, with the title if there are few sentences.
func (p *Parser) lead() []byte {
	l := &p.first
	if len(l.sentences) < minText {
		l.sentences = append(append(l.sentences, ' '), p.title...)
		l.sentences = append(l.sentences, l.restAfter(p.title)...)
	}
	p.text.reset()
	return p.text.attr(cut(l.sentences, maxLead+minSentence))
}

// restAfter returns as many pieces of rest as fit after the title.
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
