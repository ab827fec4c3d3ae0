package parse

import (
	"bytes"
	"iter"
	"strconv"
)

// A Candidate is one of the images in a srcset attribute.
type Candidate struct {
	URL        string // unchanged
	Descriptor string // "2x", "640w", "" if there is none; several are separated by spaces
}

// ParseSrcset parses a srcset attribute by the HTML standard. It omits candidates with invalid descriptors.
func ParseSrcset(value string) (list []Candidate) {
	for c := range candidates([]byte(value)) {
		list = append(list, Candidate{string(c.url), collapse(string(c.descriptors), len(value))})
	}
	return list
}

// A candidate is a Candidate with raw text.
type candidate struct{ url, descriptors []byte }

// candidates yields the images of a srcset attribute by the HTML standard's "parse a srcset attribute". Like a browser,
// it omits those with invalid descriptors.
func candidates(set []byte) iter.Seq[candidate] {
	return func(yield func(candidate) bool) {
		for {
			set = bytes.TrimLeft(set, " \t\n\r\f,")
			if len(set) == 0 {
				return
			}
			n := 0
			for n < len(set) && !isSpace(set[n]) {
				n++
			}
			c, ok := candidate{url: set[:n]}, true
			set = set[n:]
			if trimmed := bytes.TrimRight(c.url, ","); len(trimmed) < len(c.url) {
				c.url = trimmed
			} else {
				var rest []byte
				rest, ok = descriptors(set)
				c.descriptors, set = set[:len(set)-len(rest)], rest
			}
			if ok && !yield(c) {
				return
			}
		}
	}
}

// descriptors reads a candidate's descriptors up to the comma that ends it; commas in parentheses do not. It returns
// the rest of the input and whether the descriptors are valid.
func descriptors(in []byte) (rest []byte, ok bool) {
	var d descriptor
	start, inParens := 0, false
	for i := 0; ; i++ {
		end := i == len(in) || in[i] == ',' && !inParens
		if end || isSpace(in[i]) && !inParens {
			d.add(in[start:i])
			start = i + 1
		}
		switch {
		case end:
			return in[i:], d.valid()
		case in[i] == '(':
			inParens = true
		case in[i] == ')':
			inParens = false
		}
	}
}

// A descriptor records the descriptors of one candidate: width, height, pixel density.
type descriptor struct{ width, height, density, wrong bool }

func (d *descriptor) valid() bool { return !d.wrong && (d.width || !d.height) }

func (d *descriptor) add(word []byte) {
	if len(word) == 0 {
		return
	}
	number := word[:len(word)-1]
	switch word[len(word)-1] {
	case 'w':
		d.wrong = d.wrong || d.width || d.density || !isPositive(number)
		d.width = true
	case 'h':
		d.wrong = d.wrong || d.height || d.density || !isPositive(number)
		d.height = true
	case 'x':
		d.wrong = d.wrong || d.width || d.height || d.density || !isDensity(number)
		d.density = true
	default:
		d.wrong = true
	}
}

func isPositive(number []byte) bool {
	return isDigits(number) && len(bytes.TrimLeft(number, "0")) > 0
}

func isDigits(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
}

// isDensity reports whether the text is a non-negative HTML floating-point number.
func isDensity(number []byte) bool {
	if len(number) == 0 || len(number) > 32 || len(bytes.Trim(number, "0123456789.eE+-")) > 0 {
		return false
	}
	if number[0] == '+' || number[len(number)-1] == '.' || bytes.Contains(number, []byte(".e")) ||
		bytes.Contains(number, []byte(".E")) {
		return false
	}
	f, err := strconv.ParseFloat(string(number), 64)
	return err == nil && f >= 0
}
