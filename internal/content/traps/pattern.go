package traps

import (
	"slices"
	"strings"

	"kumo/internal/base/weburl"
)

// Classes that replace the varying parts of URLs in patterns.
const (
	number  = "{n}"    // digits
	day     = "{date}" // a day or a month: 2026-11-24, 2026-11
	id      = "{id}"   // digits and letters that are not a word: a UUID, a session key
	word    = "{word}" // a name beyond maxNames
	loop    = "{loop}" // the rest of a cyclic path
	endless = "{deep}" // the rest of a path with more than maxSegments segments
	rest    = "{rest}" // everything below a directory where hardly any page was new
)

const (
	maxSegments    = 20 // of a path; the rest becomes {deep}
	maxLiteral     = 40 // bytes of a name that is kept unchanged
	maxKeys        = 8  // of a query
	minID          = 10 // bytes from which on mixed digits and letters are an id
	minCycles      = 3  // repetitions of the same segments that make a path cyclic
	maxCycleLength = 4  // segments of a cycle
)

// A scratch holds the buffers of a walk. It is reused, so that a page costs no allocation.
type scratch struct {
	path           []*node
	names          []string
	segments, keys []string
	buf            []byte
	known          map[string]string // interned strings
	domains        map[string]string // of hosts
}

const maxKnown = 4096 // interned strings

// text returns b as an interned string.
func (s *scratch) text(b []byte) string {
	if t, is := s.known[string(b)]; is {
		return t
	}
	if s.known == nil || len(s.known) >= maxKnown {
		s.known = map[string]string{}
	}
	t := string(b)
	s.known[t] = t
	return t
}

// domain returns the registered domain of a host name.
func (s *scratch) domain(host string) string {
	if name, is := s.domains[host]; is {
		return name
	}
	if s.domains == nil || len(s.domains) >= maxKnown {
		s.domains = map[string]string{}
	}
	host = strings.Clone(host)
	name := weburl.Domain(host)
	s.domains[host] = name
	return name
}

// classify replaces the varying parts of a path segment, or of a host's label, with classes. plain reports whether
// there are none.
func (s *scratch) classify(segment string) (shape string, plain bool) {
	if isWord(segment) {
		if len(segment) > maxLiteral {
			return word, false
		}
		return segment, true
	}
	if isDay(segment) {
		return day, false
	}
	s.buf = s.buf[:0]
	for at := 0; at < len(segment); {
		end := at
		for end < len(segment) && isAlnum(segment[end]) {
			end++
		}
		if end == at {
			s.buf = append(s.buf, segment[at])
			at++
			continue
		}
		s.buf = appendRun(s.buf, segment[at:end])
		at = end
	}
	if len(s.buf) > maxLiteral {
		return word, false
	}
	return s.text(s.buf), false
}

// appendRun appends a run of digits and letters, or its class.
func appendRun(out []byte, run string) []byte {
	if isID(run) {
		return append(out, id...)
	}
	for at := 0; at < len(run); at++ {
		if !isDigit(run[at]) {
			out = append(out, run[at])
			continue
		}
		out = append(out, number...)
		for at+1 < len(run) && isDigit(run[at+1]) {
			at++
		}
	}
	return out
}

// isID reports whether a run of digits and letters is not a word: it is long, and changes often between digits and
// letters, or is hexadecimal.
func isID(run string) bool {
	digits, changes, hex := 0, 0, true
	for i := range len(run) {
		if isDigit(run[i]) {
			digits++
		} else if c := run[i] | 0x20; c < 'a' || c > 'f' {
			hex = false
		}
		if i > 0 && isDigit(run[i]) != isDigit(run[i-1]) {
			changes++
		}
	}
	switch letters := len(run) - digits; {
	case digits == 0 || letters == 0:
		return false
	case hex && len(run) >= 8:
		return true
	}
	return len(run) >= minID && changes >= 2 || len(run) >= 3*minID
}

// isDay reports whether a segment is a day or a month, as in 2026-11-24, 2026-11, 20261124.
func isDay(segment string) bool {
	var digits [8]byte
	n := 0
	for i := range len(segment) {
		switch c := segment[i]; {
		case c == '-' || c == '_' || c == '.':
		case n == len(digits) || !isDigit(c):
			return false
		default:
			digits[n] = c
			n++
		}
	}
	if n != 6 && n != 8 {
		return false
	}
	two := func(at int) int { return 10*int(digits[at]-'0') + int(digits[at+1]-'0') }
	if century, month := two(0), two(4); century != 19 && century != 20 || month < 1 || month > 12 {
		return false
	}
	return n == 6 || two(6) >= 1 && two(6) <= 31
}

// isWord reports whether a name contains no digits.
func isWord(s string) bool { return !strings.ContainsAny(s, "0123456789") }

func isDigit(c byte) bool { return c-'0' <= 9 }

func isAlnum(c byte) bool { return isDigit(c) || (c|0x20)-'a' < 26 }

// findCycle reports whether segments ends with several repetitions of the same segments, as in /a/b/a/b/a/b. once is
// the index after the first repetition. Repeated numbers do not count, since map tiles have such paths.
func findCycle(segments []string) (once int, round bool) {
	n := len(segments)
	for size := 1; size <= maxCycleLength && size*minCycles <= n; size++ {
		same, named := true, false
		for i := n - size*(minCycles-1); i < n && same; i++ {
			same = segments[i] == segments[i-size]
			named = named || strings.Trim(segments[i], "0123456789") != ""
		}
		if same && named {
			return n - size*(minCycles-1), true
		}
	}
	return 0, false
}

// query returns the names of a query's parameters, sorted and without duplicates.
func (s *scratch) query(query string) string {
	s.keys = s.keys[:0]
	for part := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(part, "=")
		if key = strings.Map(plainKey, key); len(key) > maxLiteral {
			key = word
		} else {
			key, _ = s.classify(key)
		}
		s.keys = append(s.keys, key)
		if len(s.keys) > 4*maxKeys {
			break
		}
	}
	slices.Sort(s.keys)
	s.buf = append(s.buf[:0], '?')
	for i, key := range slices.Compact(s.keys) {
		if i > 0 {
			s.buf = append(s.buf, '&')
		}
		if i == maxKeys {
			s.buf = append(s.buf, "..."...)
			break
		}
		s.buf = append(s.buf, key...)
	}
	return s.text(s.buf)
}

// plainKey replaces the separators of patterns in a parameter's name.
func plainKey(r rune) rune {
	if r <= ' ' || r == '/' || r == '?' || r == ':' || r > '~' {
		return '_'
	}
	return r
}
