package parse

import (
	"bytes"
	"iter"
	"strconv"
)

// candidates gives the URLs of a srcset attribute by the HTML standard's "parse a srcset attribute". Those whose descriptors
// are wrong are left out, as a browser leaves them.
func candidates(set []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			set = bytes.TrimLeft(set, " \t\n\r\f,")
			if len(set) == 0 {
				return
			}
			n := 0
			for n < len(set) && !isSpace(set[n]) {
				n++
			}
			ref, ok := set[:n], true
			set = set[n:]
			if trimmed := bytes.TrimRight(ref, ","); len(trimmed) < len(ref) {
				ref = trimmed
			} else {
				set, ok = descriptors(set)
			}
			if ok && !yield(ref) {
				return
			}
		}
	}
}

// descriptors reads a candidate's descriptors up to the comma that ends it, which is not one in parentheses. It returns what
// follows and whether they are right.
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

// A descriptor is what is said of one candidate: its width, its height, its pixel density.
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

// isDensity reports whether the text is a floating-point number that is not negative, as HTML writes them.
func isDensity(number []byte) bool {
	if len(number) == 0 || len(number) > 32 || len(bytes.Trim(number, "0123456789.eE+-")) > 0 {
		return false
	}
	if number[0] == '+' || number[len(number)-1] == '.' || bytes.Contains(number, []byte(".e")) || bytes.Contains(number, []byte(".E")) {
		return false
	}
	f, err := strconv.ParseFloat(string(number), 64)
	return err == nil && f >= 0
}
