package parse

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// query returns ref with its query percent-encoded in the document's charset. The URL standard requires that for pages
// in legacy charsets, since their servers expect it. Characters that the charset lacks become numeric character
// references.
func (t *text) query(ref []byte) []byte {
	end := indexByte(ref, '#')
	mark := indexByte(ref[:end], '?')
	if isASCII(ref[mark:end]) {
		return ref
	}
	start := len(t.buf)
	t.buf = append(t.buf, ref[:mark]...)
	for in := ref[mark:end]; len(in) > 0; {
		n := indexHigh(in)
		t.buf = append(t.buf, in[:n]...)
		in = in[n:]
		n = indexASCII(in)
		t.encode(in[:n])
		in = in[n:]
	}
	t.buf = append(t.buf, ref[end:]...)
	return t.buf[start:]
}

// Query returns a reference of a page with its query percent-encoded in the page's charset, as the links of parsed pages
// are; "" is UTF-8.
func Query(ref, charset string) string {
	if charset == "" || isASCII([]byte(ref)) {
		return ref
	}
	cs := detected(charset)
	if !cs.isLegacy() {
		return ref
	}
	t := text{encoder: cs.enc.NewEncoder()}
	return string(t.query([]byte(ref)))
}

// encode appends text, which contains no ASCII.
func (t *text) encode(text []byte) {
	if out, err := t.encoder.Bytes(text); err == nil {
		t.escape(out)
		return
	}
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if out, err := t.encoder.Bytes(text[:n]); err == nil {
			t.escape(out)
		} else {
			t.buf = append(t.buf, "%26%23"...)
			t.buf = strconv.AppendInt(t.buf, int64(r), 10)
			t.buf = append(t.buf, "%3B"...)
		}
		text = text[n:]
	}
}

// escape appends bytes in a legacy charset. ASCII bytes, which can be the second byte of a character, are kept, except
// for "#", which would end the query.
func (t *text) escape(in []byte) {
	const hex = "0123456789ABCDEF"
	for _, c := range in {
		if c > ' ' && c < 0x7F && c != '#' {
			t.buf = append(t.buf, c)
		} else {
			t.buf = append(t.buf, '%', hex[c>>4], hex[c&15])
		}
	}
}

func indexByte(in []byte, c byte) int {
	if i := bytes.IndexByte(in, c); i >= 0 {
		return i
	}
	return len(in)
}

func indexHigh(in []byte) (n int) {
	for n < len(in) && in[n] < utf8.RuneSelf {
		n++
	}
	return n
}

func indexASCII(in []byte) (n int) {
	for n < len(in) && in[n] >= utf8.RuneSelf {
		n++
	}
	return n
}
