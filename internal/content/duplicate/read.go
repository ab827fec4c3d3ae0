package duplicate

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// A Reader computes signatures of pages. It must not be used concurrently, and does not allocate.
type Reader struct {
	main, all       sketch
	images          uint64
	media           uint64 // hash of the sources of images, videos and frames
	words           [minShingles + 2]span
	ownWords        int                   // words outside of links and boilerplate
	openBoilerplate [boilerplateKinds]int // open elements of each kind of boilerplate
	inAnchor        bool
	inBoilerplate   bool // any of openBoilerplate is open
}

// A span is the position of a word in the page.
type span struct{ begin, end int }

const boilerplateKinds = 5 // nav, footer, aside, select, button

// Read returns the signature of an HTML page, from the text outside of links and navigation and from all text. Words
// are separated by spaces and tags; case is ignored. Bytes beyond ASCII are not decoded, so the charset is irrelevant.
// A tag ends at its first ">". If that is in an attribute, the rest counts as text, but consistently in all pages.
func (r *Reader) Read(html []byte) Signature {
	*r = Reader{}
	r.main.reset()
	r.all.reset()
	for at := 0; at < len(html); {
		word, n := nextWord(html[at:])
		if at += n; word != 0 {
			r.addWord(word, span{at - n, at})
		}
		if at < len(html) && html[at] == '<' {
			at = r.markup(html, at)
		}
	}
	s := Signature{main: r.main.minima(), all: r.all.minima(), images: r.images,
		short: r.all.shingles < minShingles, mainShort: r.main.shingles < minShingles}
	if s.short {
		s.brief = r.brief(html)
	}
	return s
}

// brief hashes the words of a short page outside of links and navigation, and its images, videos and frames. It ignores
// words with a digit if enough other words remain. It returns 0 if the page has too few words.
func (r *Reader) brief(html []byte) uint64 {
	if r.ownWords < minWords {
		return 0
	}
	all, plain, words := r.media, r.media, 0
	for _, at := range r.words[:min(r.ownWords, len(r.words))] {
		word := bytes.ToLower(bytes.TrimSpace(html[at.begin:at.end]))
		all = mix(all ^ hash(word))
		if !bytes.ContainsAny(word, "0123456789") {
			plain = mix(plain ^ hash(word))
			words++
		}
	}
	if words >= minWords {
		all = plain
	}
	return max(all, 1)
}

// addWord adds a word of the text.
func (r *Reader) addWord(word uint64, at span) {
	h := r.all.shingle(word)
	if !r.inBoilerplate {
		if r.ownWords < len(r.words) {
			r.words[r.ownWords] = at
		}
		r.ownWords++
		own := h
		if r.main.last != r.all.last { // usually they are the same
			own = r.main.shingle(word)
		}
		r.main.add(own, word)
	}
	r.all.add(h, word)
}

// markup reads the construct whose "<" is at a position, and returns its end.
func (r *Reader) markup(html []byte, at int) int {
	at++
	if at+2 < len(html) && html[at] == '!' && html[at+1] == '-' && html[at+2] == '-' {
		return indexAfter(html, at+3, "-->")
	}
	closing := at < len(html) && html[at] == '/'
	if closing {
		at++
	}
	name, begin := uint64(0), at
	for ; at < len(html) && isLetter(html[at]|0x20); at++ {
		name = name<<8 | uint64(html[at]|0x20)
	}
	if at == begin && !closing && (at >= len(html) || html[at] != '!' && html[at] != '?') {
		return at // not a tag: a "<" in text
	}
	if at-begin > 8 {
		name = 0 // not one of the names below
	}
	begin = at
	if at = pastTag(html, at); shows(name) && !r.checkBoilerplate() {
		shown := sourceHash(html[begin:at])
		r.media = r.media*prime ^ shown
		if name == img {
			r.images = r.images*prime ^ shown
		}
	}
	r.trackElement(name, closing)
	if raw := rawName(name); raw != "" && !closing {
		return skipRaw(html, at, raw)
	}
	return at
}

// Element names, with one byte per letter.
const (
	a      = 'a'
	img    = 'i'<<16 | 'm'<<8 | 'g'
	nav    = 'n'<<16 | 'a'<<8 | 'v'
	footer = 'f'<<40 | 'o'<<32 | 'o'<<24 | 't'<<16 | 'e'<<8 | 'r'
	aside  = 'a'<<32 | 's'<<24 | 'i'<<16 | 'd'<<8 | 'e'
	choice = 's'<<40 | 'e'<<32 | 'l'<<24 | 'e'<<16 | 'c'<<8 | 't'
	button = 'b'<<40 | 'u'<<32 | 't'<<24 | 't'<<16 | 'o'<<8 | 'n'

	audio  = 'a'<<32 | 'u'<<24 | 'd'<<16 | 'i'<<8 | 'o'
	embed  = 'e'<<32 | 'm'<<24 | 'b'<<16 | 'e'<<8 | 'd'
	iframe = 'i'<<40 | 'f'<<32 | 'r'<<24 | 'a'<<16 | 'm'<<8 | 'e'
	media  = 's'<<40 | 'o'<<32 | 'u'<<24 | 'r'<<16 | 'c'<<8 | 'e'
	video  = 'v'<<32 | 'i'<<24 | 'd'<<16 | 'e'<<8 | 'o'

	script   = 's'<<40 | 'c'<<32 | 'r'<<24 | 'i'<<16 | 'p'<<8 | 't'
	style    = 's'<<32 | 't'<<24 | 'y'<<16 | 'l'<<8 | 'e'
	template = 't'<<56 | 'e'<<48 | 'm'<<40 | 'p'<<32 | 'l'<<24 | 'a'<<16 | 't'<<8 | 'e'
	svg      = 's'<<16 | 'v'<<8 | 'g'
	noscript = 'n'<<56 | 'o'<<48 | 's'<<40 | 'c'<<32 | 'r'<<24 | 'i'<<16 | 'p'<<8 | 't'
)

// shows reports whether an element displays the resource of its src attribute.
func shows(name uint64) bool {
	switch name {
	case img, audio, embed, iframe, media, video:
		return true
	}
	return false
}

// trackElement records where boilerplate begins and ends.
func (r *Reader) trackElement(name uint64, closing bool) {
	kind := 0
	switch name {
	default:
		return
	case a:
		r.inAnchor = !closing
		r.inBoilerplate = r.inAnchor || r.checkBoilerplate()
		return
	case nav:
	case footer:
		kind = 1
	case aside:
		kind = 2
	case choice:
		kind = 3
	case button:
		kind = 4
	}
	if !closing {
		r.openBoilerplate[kind]++
	} else if r.openBoilerplate[kind] > 0 {
		r.openBoilerplate[kind]--
	}
	r.inBoilerplate = r.inAnchor || r.checkBoilerplate()
}

// rawName returns the name of an element whose content is not text, or "".
func rawName(name uint64) string {
	switch name {
	case script:
		return "script"
	case style:
		return "style"
	case template:
		return "template"
	case svg:
		return "svg"
	case noscript:
		return "noscript"
	}
	return ""
}

func (r *Reader) checkBoilerplate() bool { return r.openBoilerplate != [boilerplateKinds]int{} }

const (
	offset = 14695981039346656037 // of FNV-1a
	prime  = 1099511628211

	lowBits  = 0x0101010101010101 // byte of a number
	highBits = 0x80 * lowBits
)

// nextWord hashes the first word of a text and returns the position after it. 0 means that there is no word: the next
// character begins markup, or the text ends. It reads eight bytes at a time as one number.
func nextWord(text []byte) (hash uint64, n int) {
	for n < len(text) && text[n] <= ' ' {
		n++
	}
	for n < len(text) {
		part := loadEight(text[n:])
		lt := part ^ '<'*lowBits
		// The lowest bit set belongs to the first byte that is "<" or white space. Higher bits may be wrong.
		ends := ((part-('!'*lowBits))&^part | (lt-lowBits)&^lt) & highBits
		if ends == 0 {
			if part&highBits != 0 {
				return slowWord(text, n, hash)
			}
			hash = mix(hash ^ (part | ' '*lowBits))
			n += 8
			continue
		}
		size := bits.TrailingZeros64(ends) &^ 7
		part &= 1<<size - 1
		if part&highBits != 0 {
			return slowWord(text, n, hash)
		}
		if size > 0 {
			hash ^= part | ' '*lowBits
		}
		return hash, n + size/8
	}
	return hash, n
}

// loadEight returns the first eight bytes of a text as one number, padded with spaces.
func loadEight(text []byte) uint64 {
	if len(text) >= 8 {
		return binary.LittleEndian.Uint64(text)
	}
	last := [8]byte{' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '}
	copy(last[:], text)
	return binary.LittleEndian.Uint64(last[:])
}

// slowWord continues a word byte by byte if it contains bytes beyond ASCII. In scripts without spaces between words,
// each character is a word.
func slowWord(text []byte, n int, hash uint64) (uint64, int) {
	if n < len(text) && hash == 0 && text[n] >= 0xE3 { // the first byte of a character from Hiragana on
		for begin := n; n < len(text) && (n == begin || text[n]&0xC0 == 0x80); n++ {
			hash = hash<<8 | uint64(text[n])
		}
		return hash, n
	}
	for ; n < len(text) && text[n] > ' ' && text[n] != '<' && text[n] < 0xE3; n++ {
		c := text[n]
		if c < 0x80 {
			c |= ' '
		}
		hash = (hash ^ uint64(c)) * prime
	}
	return hash, n
}

func isLetter(c byte) bool { return c-'a' < 26 }

// skipRaw returns the end of the next end tag of an element.
func skipRaw(html []byte, at int, name string) int {
	for {
		if at = indexAfter(html, at, "</"); at+len(name) > len(html) {
			return len(html)
		}
		if bytes.EqualFold(html[at:at+len(name)], []byte(name)) {
			return pastTag(html, at+len(name))
		}
	}
}

// indexAfter returns the position after the next occurrence of end, or the end of the text.
func indexAfter(html []byte, at int, end string) int {
	i := bytes.Index(html[at:], []byte(end))
	if i < 0 {
		return len(html)
	}
	return at + i + len(end)
}

// pastTag returns the position after the next ">", or the end of the text. Most are within eight bytes, which are
// compared as one number.
func pastTag(html []byte, at int) int {
	if at+8 <= len(html) {
		x := binary.LittleEndian.Uint64(html[at:]) ^ '>'*lowBits
		if zeros := (x - lowBits) &^ x & highBits; zeros != 0 {
			return at + bits.TrailingZeros64(zeros)/8 + 1
		}
		at += 8
	}
	if i := bytes.IndexByte(html[at:], '>'); i >= 0 {
		return at + i + 1
	}
	return len(html)
}

// sourceHash hashes the URL of an image, without its query.
func sourceHash(tag []byte) uint64 {
	at := bytes.Index(tag, []byte("src="))
	if at < 0 {
		return 0
	}
	value := bytes.TrimLeft(tag[at+len("src="):], `"'`)
	if end := bytes.IndexAny(value, `"'?# >`); end >= 0 {
		value = value[:end]
	}
	return hash(value)
}
