package parse

import (
	"bytes"
	"iter"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

// maxPath is the maximum length of a path in a script, in bytes.
const maxPath = 512

// paths extracts strings in a script that look like a path or a web address. It uses whole strings only: concatenated
// ones are known only when the script runs.
func (x *extractor) paths(script []byte) {
	for literal := range literals(script) {
		x.text.reset()
		if value := bytes.ReplaceAll(x.text.decode(literal), []byte(`\/`), []byte("/")); isPath(value) {
			x.link(&reference{url: value, kind: page.Path})
		}
	}
}

// literals yields the strings in a script. Quotes in comments or regular expressions can confuse it until the line
// ends.
func literals(script []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := 0; i < len(script); i++ {
			quote := script[i]
			if quote != '"' && quote != '\'' && quote != '`' {
				continue
			}
			start := i + 1
			for i++; i < len(script) && script[i] != quote && (script[i] != '\n' || quote == '`'); i++ {
				if script[i] == '\\' {
					i++
				}
			}
			if i < len(script) && script[i] == quote && i-start <= maxPath && !yield(script[start:i]) {
				return
			}
		}
	}
}

// isPath reports whether a string looks like a location: a web address; a string that begins with "/", "./" or "../"
// and is longer; a string that contains a "/" and ends like a file name.
func isPath(s []byte) bool {
	for _, c := range s {
		if c <= ' ' || bytes.IndexByte([]byte("\"'`<>{}|\\^$*()[];,"), c) >= 0 || c >= 0x7F {
			return false
		}
	}
	switch {
	case isAbsolute(s):
		return bytes.IndexByte(s[len("http://"):], '.') > 0
	case bytes.HasPrefix(s, []byte("//")):
		return bytes.IndexByte(s, '.') > 2 && isAlnum(s[2])
	case bytes.HasPrefix(s, []byte("/")):
		return len(s) > 1 && (isAlnum(s[1]) || s[1] == '_' || s[1] == '?')
	case bytes.HasPrefix(s, []byte("./")), bytes.HasPrefix(s, []byte("../")):
		return isAlnum(s[len(s)-1]) || s[len(s)-1] == '/'
	}
	return isFile(s)
}

// isFile reports whether a string is like "dir/name.html". Media types do not match: they have no dot, or no known file
// name extension after it.
func isFile(s []byte) bool {
	s = s[:indexAny(s, "?#")]
	slash, dot := bytes.IndexByte(s, '/'), bytes.LastIndexByte(s, '.')
	if slash <= 0 || dot < slash || !isAlnum(s[0]) || bytes.IndexByte(s, ':') >= 0 {
		return false
	}
	switch string(s[dot+1:]) {
	case "html", "htm", "xhtml", "php", "asp", "aspx", "jsp", "do", "cgi", "json", "xml", "js", "mjs", "css", "txt", "pdf",
		"png", "jpg",
		"jpeg", "gif", "svg", "webp", "mp3", "mp4", "webm", "woff", "woff2", "zip":
		return true
	}
	return false
}

// addresses extracts the web addresses in plain text.
func (x *extractor) addresses(body []byte) {
	for url := range TextLinks(body) {
		x.text.reset()
		x.link(&reference{url: x.text.decode(url), kind: page.Text})
	}
}

// TextLinks yields the web addresses in plain text, unchanged: from "http://" or "https://" up to white space or a
// character that URLs cannot contain, without the punctuation of the surrounding sentence.
func TextLinks(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			i := bytes.Index(text, []byte("://"))
			if i < 0 {
				return
			}
			start := i - len("http")
			if start > 0 && i > 0 && toLower(text[i-1]) == 's' {
				start--
			}
			end := i + len("://")
			for end < len(text) && text[end] > ' ' && text[end] != 0x7F && bytes.IndexByte([]byte("\"<>`{}|\\^"),
				text[end]) < 0 {
				end++
			}
			if start >= 0 && end-start <= weburl.MaxLength && isAbsolute(text[start:end]) &&
				(start == 0 || !isAlnum(text[start-1])) {
				if !yield(trimSentence(text[start:end])) {
					return
				}
			}
			text = text[max(end, i+len("://")):]
		}
	}
}

// trimSentence returns a URL without trailing punctuation. A closing bracket is part of the URL if the URL contains the
// opening one.
func trimSentence(url []byte) []byte {
	for len(url) > 0 {
		last := url[len(url)-1]
		switch {
		case bytes.IndexByte([]byte(".,;:!?'*"), last) >= 0:
		case last == ')' && bytes.Count(url, []byte("(")) < bytes.Count(url, []byte(")")):
		case last == ']' && bytes.IndexByte(url, '[') < 0:
		default:
			return url
		}
		url = url[:len(url)-1]
	}
	return url
}
