package cookies

import (
	"strings"
	"time"
)

// parseDate parses a date by RFC 6265bis 5.6.1: the first time, day, month and year among words in any order.
func parseDate(s string) (time.Time, bool) {
	var d date
	for word := range strings.FieldsFuncSeq(s, isDelimiter) {
		switch {
		case !d.hasTime && d.readTime(word):
		case d.day == 0 && number(word, 2) > 0 && len(digits(word)) <= 2:
			d.day = number(word, 2)
		case d.month == 0 && month(word) > 0:
			d.month = month(word)
		case !d.hasYear && len(digits(word)) >= 2 && len(digits(word)) <= 4:
			d.year, d.hasYear = number(word, 4), true
		}
	}
	switch {
	case d.hasYear && d.year < 70:
		d.year += 2000
	case d.hasYear && d.year < 100:
		d.year += 1900
	}
	if !d.hasTime || !d.hasYear || d.year < 1601 || d.month == 0 || d.day == 0 || d.hour > 23 || d.minute > 59 ||
		d.second > 59 {
		return time.Time{}, false
	}
	t := time.Date(d.year, time.Month(d.month), d.day, d.hour, d.minute, d.second, 0, time.UTC)
	return t, t.Day() == d.day // the month has that day
}

type date struct {
	year, month, day, hour, minute, second int
	hasTime, hasYear                       bool
}

func isDelimiter(r rune) bool {
	return r == '\t' || r >= ' ' && r <= '/' || r >= ';' && r <= '@' || r >= '[' && r <= '`' || r >= '{' && r <= '~'
}

// readTime parses hours, minutes and seconds of one or two digits each. Any text may follow.
func (d *date) readTime(word string) bool {
	h, rest, ok := strings.Cut(word, ":")
	m, s, also := strings.Cut(rest, ":")
	if !ok || !also {
		return false
	}
	s = digits(s)
	if !isShort(h) || !isShort(m) || !isShort(s) {
		return false
	}
	d.hour, d.minute, d.second, d.hasTime = number(h, 2), number(m, 2), number(s, 2), true
	return true
}

func isShort(s string) bool { return s != "" && len(s) <= 2 && len(digits(s)) == len(s) }

// digits returns the digits at the beginning of a word.
func digits(word string) string {
	return word[:len(word)-len(strings.TrimLeft(word, "0123456789"))]
}

// number returns the value of the leading digits of a word; 0 if there are none or more than most.
func number(word string, most int) (n int) {
	word = digits(word)
	if len(word) > most {
		return 0
	}
	for _, c := range []byte(word) {
		n = 10*n + int(c-'0')
	}
	return n
}

func month(word string) int {
	if len(word) < 3 {
		return 0
	}
	const names = "janfebmaraprmayjunjulaugsepoctnovdec"
	if i := strings.Index(names, strings.ToLower(word[:3])); i >= 0 && i%3 == 0 {
		return i/3 + 1
	}
	return 0
}
