package parse

import "bytes"

// prescanSize is the number of bytes at the beginning of a body that are searched for a charset declaration.
const prescanSize = 1024

// prescan implements the HTML standard's "prescan a byte stream to determine its encoding" and, if that finds nothing,
// "get an XML encoding". As the standard requires, it parses tags more simply than the tokenizer and also searches the
// text of scripts.
func prescan(body []byte) (cs charset, ok bool) {
	head := body[:min(len(body), prescanSize)]
	switch {
	case bytes.HasPrefix(head, []byte("<\x00?\x00x\x00")):
		return lookup([]byte("utf-16le"))
	case bytes.HasPrefix(head, []byte("\x00<\x00?\x00x")):
		return lookup([]byte("utf-16be"))
	}
	s := scanner{src: head}
	for s.pos = index(head, 0, '<'); s.pos+1 < len(head); s.pos = index(head, s.pos, '<') {
		if cs, ok := s.prescanTag(); ok {
			return cs, true
		}
	}
	return xmlEncoding(head)
}

// prescanTag reads a construct that begins with "<".
func (s *scanner) prescanTag() (cs charset, ok bool) {
	rest := s.src[s.pos:]
	s.pos++
	switch {
	case bytes.HasPrefix(rest, []byte("<!--")):
		s.pos++
		s.prescanComment()
	case len(rest) > 5 && equalFold(rest[:5], "<meta") && (isSpace(rest[5]) || rest[5] == '/'):
		s.pos += len("meta")
		whole := false
		if s.pos, whole = s.attributes(s.pos, tagMeta); whole {
			return s.metaCharset()
		}
	case isLetter(rest[1]) || rest[1] == '/' && len(rest) > 2 && isLetter(rest[2]):
		s.pos++
		for s.pos < len(s.src) && !isSpace(s.src[s.pos]) && s.src[s.pos] != '>' {
			s.pos++
		}
		s.pos, _ = s.attributes(s.pos, tagOther)
	case rest[1] == '!' || rest[1] == '/' || rest[1] == '?':
		s.pos = past(s.src, s.pos, '>')
	}
	return charset{}, false
}

// prescanComment reads up to the next "-->", whose dashes may be those of the comment's beginning.
func (s *scanner) prescanComment() {
	for start := s.pos; s.pos < len(s.src); {
		end := index(s.src, s.pos, '>')
		s.pos = min(end+1, len(s.src))
		if bytes.HasSuffix(s.src[start:end], []byte("--")) {
			return
		}
	}
}

// metaCharset returns the charset of the meta element that was just read.
func (s *scanner) metaCharset() (cs charset, ok bool) {
	if label, ok := s.attr(attrCharset); ok {
		return metaLabel(label)
	}
	content, _ := s.attr(attrContent)
	equiv, _ := s.attr(attrHTTPEquiv)
	label, ok := charsetIn(content)
	if !ok || !equalFold(equiv, "content-type") {
		return charset{}, false
	}
	return metaLabel(label)
}

// xmlEncoding returns the charset of an XML declaration at the beginning.
func xmlEncoding(head []byte) (cs charset, ok bool) {
	if !bytes.HasPrefix(head, []byte("<?xml")) {
		return charset{}, false
	}
	in := head[:indexByte(head, '>')]
	i := bytes.Index(in, []byte("encoding"))
	if len(in) == len(head) || i < 0 {
		return charset{}, false
	}
	in = trimControl(in[i+len("encoding"):])
	if len(in) == 0 || in[0] != '=' {
		return charset{}, false
	}
	in = trimControl(in[1:])
	if len(in) == 0 || in[0] != '"' && in[0] != '\'' {
		return charset{}, false
	}
	label := in[1:]
	end := bytes.IndexByte(label, in[0])
	if end < 0 || bytes.ContainsFunc(label[:end], func(r rune) bool { return r <= ' ' }) {
		return charset{}, false
	}
	return metaLabel(label[:end])
}

func trimControl(in []byte) []byte {
	for len(in) > 0 && in[0] <= ' ' {
		in = in[1:]
	}
	return in
}
