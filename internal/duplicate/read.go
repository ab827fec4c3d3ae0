package duplicate

import "bytes"

// A Reader reads pages for their signatures. It serves one goroutine at a time, and allocates nothing.
type Reader struct {
	main, all sketch
	images    uint64
	outside   [len(besides)]int // open elements of each kind that are not the page's own text
	inAnchor  bool
}

// besides are elements whose text is the site's rather than the page's.
var besides = [...]string{"nav", "footer", "aside", "select", "button"}

// raw are elements whose content is no text.
var raw = [...]string{"script", "style", "template", "svg", "noscript"}

// Read is the signature of an HTML page: of the text outside of links and navigation, and of all its text. Bytes beyond
// ASCII are words as they stand, so that the charset does not matter.
func (r *Reader) Read(html []byte) Signature {
	*r = Reader{}
	r.main.reset()
	r.all.reset()
	for len(html) > 0 {
		open := bytes.IndexByte(html, '<')
		if open < 0 {
			r.text(html)
			break
		}
		r.text(html[:open])
		html = r.markup(html[open:])
	}
	return Signature{main: r.main.minima(), all: r.all.minima(), images: r.images,
		short: r.all.shingles < leastShingles, linked: r.main.shingles < leastShingles}
}

// markup reads what begins with a <, and returns the rest.
func (r *Reader) markup(html []byte) (rest []byte) {
	if bytes.HasPrefix(html, []byte("<!--")) {
		return after(html[4:], []byte("-->"))
	}
	at, closing := 1, false
	if at < len(html) && html[at] == '/' {
		at, closing = 2, true
	}
	begin := at
	for at < len(html) && isLetter(html[at]|0x20) {
		at++
	}
	if at == begin && !closing && (at >= len(html) || html[at] != '!' && html[at] != '?') {
		return html[1:] // no tag: a < in a text
	}
	name := html[begin:at]
	end := tagEnd(html[at:])
	tag := html[at : at+end]
	html = html[min(at+end+1, len(html)):]
	return r.element(name, tag, closing, html)
}

// element takes note of a tag, and returns what comes after it and the content that is no text.
func (r *Reader) element(name, tag []byte, closing bool, rest []byte) []byte {
	switch {
	case is(name, "a"):
		r.inAnchor = !closing
		return rest
	case is(name, "img") && !r.isBeside():
		r.images = r.images*prime ^ source(tag)
		return rest
	}
	for i, one := range besides {
		if is(name, one) {
			if r.outside[i]++; closing {
				r.outside[i] = max(r.outside[i]-2, 0)
			}
			return rest
		}
	}
	if closing {
		return rest
	}
	for _, one := range raw {
		if is(name, one) {
			return skip(rest, one)
		}
	}
	return rest
}

func (r *Reader) isBeside() bool { return r.outside != [len(besides)]int{} }

// text takes a text's words.
func (r *Reader) text(text []byte) {
	beside := r.inAnchor || r.isBeside()
	for at := 0; at < len(text); {
		word, n := nextWord(text[at:])
		if at += n; word == 0 {
			continue
		}
		r.all.add(word)
		if !beside {
			r.main.add(word)
		}
	}
}

const (
	offset = 14695981039346656037 // of FNV-1a
	prime  = 1099511628211
)

// nextWord hashes the first word of a text, and says how much of the text that is with what stands before it. Of scripts
// that put no spaces between words each character is one. 0 is no word.
func nextWord(text []byte) (hash uint64, n int) {
	for n < len(text) && !isWord(text[n]) {
		n++
	}
	if n == len(text) {
		return 0, n
	}
	hash = offset
	if text[n] >= 0xE3 { // the first byte of a character from Hiragana on
		for i := 0; n < len(text) && (i == 0 || text[n]&0xC0 == 0x80); i++ {
			hash = (hash ^ uint64(text[n])) * prime
			n++
		}
		return max(hash, 1), n
	}
	for n < len(text) && isWord(text[n]) && text[n] < 0xE3 {
		c := text[n]
		if c-'A' < 26 {
			c |= 0x20
		}
		hash = (hash ^ uint64(c)) * prime
		n++
	}
	return max(hash, 1), n
}

func isWord(c byte) bool { return c >= 0x80 || isLetter(c|0x20) || c-'0' < 10 }

func isLetter(c byte) bool { return c-'a' < 26 }

// is compares an element's name with one in lower case.
func is(name []byte, with string) bool {
	if len(name) != len(with) {
		return false
	}
	for i := range name {
		if name[i]|0x20 != with[i] {
			return false
		}
	}
	return true
}

// tagEnd is where a tag ends, or the text if it does not.
func tagEnd(html []byte) int {
	for at := 0; at < len(html); at++ {
		switch c := html[at]; c {
		case '>':
			return at
		case '"', '\'':
			if at > 0 && html[at-1] == '=' {
				end := bytes.IndexByte(html[at+1:], c)
				if end < 0 {
					return len(html)
				}
				at += end + 1
			}
		}
	}
	return len(html)
}

// skip leaves out what comes before the end tag of an element.
func skip(html []byte, name string) []byte {
	for {
		open := bytes.Index(html, []byte("</"))
		if open < 0 {
			return nil
		}
		if html = html[open+2:]; len(html) >= len(name) && is(html[:len(name)], name) {
			return html[min(tagEnd(html)+1, len(html)):]
		}
	}
}

func after(html, end []byte) []byte {
	at := bytes.Index(html, end)
	if at < 0 {
		return nil
	}
	return html[at+len(end):]
}

// source hashes where an image lies, without its query.
func source(tag []byte) uint64 {
	at := bytes.Index(tag, []byte("src="))
	if at < 0 {
		return 0
	}
	value := bytes.TrimLeft(tag[at+len("src="):], `"'`)
	if end := bytes.IndexAny(value, `"'?# >`); end >= 0 {
		value = value[:end]
	}
	hash := uint64(offset)
	for _, c := range value {
		hash = (hash ^ uint64(c)) * prime
	}
	return hash
}
