package parse

import "bytes"

// rawText reads the raw text of an element from i on, and its end tag.
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
	end, _ = s.attributes(end+len("</")+len(s.tag.name()), tagOther) // attributes of an end tag are ignored
	s.have = have
	return end
}

// rawEnd returns the start of the next end tag with the name, or the document's end.
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

// scriptEnd returns the end of a script. The script's text may contain an end tag: between "<!--" and "-->", "<script>"
// and "</script>" come in pairs.
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

// escapedEnd returns the end of escaped script text, which begins just before i. It reports whether the script also
// ends there.
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

// beginsTag reports whether text begins with a tag name, which must be in lower case, followed by a byte that ends
// names.
func beginsTag(text []byte, name string) bool {
	return len(text) > len(name) && class[text[len(name)]]&endsTagName != 0 && equalFold(text[:len(name)], name)
}

// equalFold reports whether text equals lower, which must be in lower case, ignoring the case of ASCII letters.
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
