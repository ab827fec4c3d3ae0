package parse

import "bytes"

// rawText reads the text from i on of an element in which only its own end tag is markup, and that end tag.
func (s *scanner) rawText(i int) (end int) {
	end = len(s.src)
	switch s.tag {
	case tagPlaintext:
	case tagScript:
		end = s.scriptEnd(i)
	default:
		end = s.rawEnd(i, s.tag.name())
	}
	s.content = s.src[i:end]
	if end == len(s.src) {
		return end
	}
	have := s.have
	end, _ = s.attributes(end+len("</")+len(s.tag.name()), tagOther) // they are not the element's
	s.have = have
	return end
}

// rawEnd returns where the next end tag of the name begins, or the document's end.
func (s *scanner) rawEnd(from int, name string) int {
	for i := from; ; {
		n := bytes.Index(s.src[i:], []byte("</"))
		if n < 0 {
			return len(s.src)
		}
		i += n + len("</")
		if beginsTag(s.src[i:], name) {
			return i - len("</")
		}
	}
}

// scriptEnd returns where a script ends, whose text may hide an end tag: within "<!--" and "-->", which is in the
// script's escaped text, "<script>" and "</script>" come in pairs.
func (s *scanner) scriptEnd(from int) int {
	end := s.rawEnd(from, "script")
	for {
		n := bytes.Index(s.src[from:end], []byte("<!--"))
		if n < 0 {
			return end
		}
		var ended bool
		if from, ended = s.escapedEnd(from + n + len("<!--")); ended {
			return from
		}
		if from > end {
			end = s.rawEnd(from, "script")
		}
	}
}

// escapedEnd goes to the end of escaped script text, whose beginning lies just before i. It reports whether the script
// ends there too.
func (s *scanner) escapedEnd(i int) (end int, ended bool) {
	double := false
	for ; i < len(s.src); i++ {
		switch rest := s.src[i+1:]; s.src[i] {
		case '>':
			if s.src[i-1] == '-' && s.src[i-2] == '-' {
				return i + 1, false
			}
		case '<':
			closes := len(rest) > 0 && rest[0] == '/' && beginsTag(rest[1:], "script")
			switch {
			case closes && !double:
				return i, true
			case closes:
				double = false
			case beginsTag(rest, "script"):
				double = true
			}
		}
	}
	return i, true
}

// beginsTag reports whether text begins with the name of a tag, which is in lower case, and with what ends such a name.
func beginsTag(text []byte, name string) bool {
	return len(text) > len(name) && class[text[len(name)]]&endsTagName != 0 && equalFold(text[:len(name)], name)
}

// equalFold reports whether text is lower, which is in lower case, but for the case of ASCII letters.
func equalFold(text []byte, lower string) bool {
	if len(text) != len(lower) {
		return false
	}
	for i, c := range text {
		if toLower(c) != lower[i] {
			return false
		}
	}
	return true
}

func toLower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}
