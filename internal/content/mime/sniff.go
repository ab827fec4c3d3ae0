package mime

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"strings"
)

// Header is the number of bytes of a body that Sniff reads: the standard's resource header.
const Header = 1445

// Sniff determines the type of a body, by the standard's section 7. The first Header bytes of the body suffice.
// declared is its Content-Type field, "" if there is none. noSniff means that the server forbids guessing
// (X-Content-Type-Options: nosniff).
func Sniff(body []byte, declared string, noSniff bool) Type {
	body = body[:min(len(body), Header)]
	t, known := Parse(declared)
	switch {
	case !known, unknownTypes[t.Essence()]:
		return typeOf(sniffUnknown(body, !noSniff))
	case t.IsHTML(), t.IsXML(), t.Essence() == "text/plain":
		if essence := binaryType(body); essence != "" {
			return typeOf(essence)
		}
	}
	switch {
	case noSniff:
	case apacheTypes[declared]:
		return typeOf(textOrBinary(body))
	case t.IsXML():
	case t.IsHTML():
		if essence := feedType(body); essence != "" {
			return typeOf(essence)
		}
	case t.IsImage():
		return orElse(match(images, body), t)
	case t.IsMedia():
		return orElse(mediaType(body), t)
	}
	return t
}

var unknownTypes = map[string]bool{"unknown/unknown": true, "application/unknown": true, "*/*": true}

// apacheTypes are the types that an old Apache declares for unknown files.
var apacheTypes = map[string]bool{"text/plain": true, "text/plain; charset=ISO-8859-1": true,
	"text/plain; charset=iso-8859-1": true, "text/plain; charset=UTF-8": true}

func typeOf(essence string) Type {
	main, sub, _ := strings.Cut(essence, "/")
	return Type{Main: main, Sub: sub}
}

func orElse(essence string, t Type) Type {
	if essence == "" {
		return t
	}
	return typeOf(essence)
}

// sniffUnknown implements the standard's section 7.1. With scriptable it also detects types that may contain scripts.
func sniffUnknown(body []byte, scriptable bool) string {
	if scriptable {
		if essence := markupType(body); essence != "" {
			return essence
		}
	}
	if essence := cmp.Or(match(texts, body), bySignature(body)); essence != "" {
		return essence
	}
	return textOrBinary(body)
}

// bySignature detects images, audio, video, fonts and archives.
func bySignature(body []byte) string {
	return cmp.Or(match(images, body), mediaType(body), match(fonts, body), match(archives, body))
}

// markupType detects HTML, XML and PDF.
func markupType(body []byte) string {
	if bytes.HasPrefix(body, []byte("%PDF-")) {
		return "application/pdf"
	}
	in := bytes.TrimLeft(body, "\t\n\f\r ")
	if bytes.HasPrefix(in, []byte("<?xml")) {
		return "text/xml"
	}
	if bytes.HasPrefix(in, []byte("<!--")) {
		if len(in) > 4 && endsTag(in[4]) {
			return "text/html"
		}
		return ""
	}
	for _, tag := range htmlTags {
		if len(in) > len(tag) && bytes.EqualFold(in[:len(tag)], []byte(tag)) && endsTag(in[len(tag)]) {
			return "text/html"
		}
	}
	return ""
}

var htmlTags = []string{"<!doctype html", "<html", "<head", "<script", "<iframe", "<h1", "<div", "<font", "<table",
	"<a", "<style",
	"<title", "<b", "<body", "<br", "<p"}

func endsTag(c byte) bool { return c == ' ' || c == '>' }

// textOrBinary implements the standard's section 7.2.
func textOrBinary(body []byte) string {
	if hasMark(body) || !isBinary(body) {
		return "text/plain"
	}
	return "application/octet-stream"
}

// hasMark reports whether a body begins with a byte order mark.
func hasMark(body []byte) bool {
	return bytes.HasPrefix(body, []byte("\xFE\xFF")) || bytes.HasPrefix(body, []byte("\xFF\xFE")) ||
		bytes.HasPrefix(body, []byte("\xEF\xBB\xBF"))
}

// isBinary reports whether there is a byte that text never contains. It skips eight bytes at a time if all of them are
// above the control characters.
func isBinary(body []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for len(body) > 0 {
		if len(body) >= 8 {
			if v := binary.LittleEndian.Uint64(body); (v-' '*ones)&^v&highs == 0 {
				body = body[8:]
				continue
			}
		}
		if c := body[0]; c < ' ' && c != '\t' && c != '\n' && c != '\f' && c != '\r' && c != 0x1B {
			return true
		}
		body = body[1:]
	}
	return false
}

// binaryType detects a body that is neither markup nor text, regardless of its declared type. Signatures that may begin
// a text count only if the body contains binary bytes.
func binaryType(body []byte) string {
	if bytes.HasPrefix(body, []byte("%PDF-")) {
		return "application/pdf"
	}
	if hasMark(body) || !isBinary(body) {
		return ""
	}
	return bySignature(body)
}
