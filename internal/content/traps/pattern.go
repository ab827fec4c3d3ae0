package traps

import (
	"slices"
	"strings"

	"kumo/internal/base/weburl"
)

// The classes that stand in a pattern for what differs from URL to URL.
const (
	number  = "{n}"    // digits
	day     = "{date}" // a day or a month: 2026-11-24, 2026-11
	id      = "{id}"   // digits and letters as no word has them: a UUID, a session's key
	word    = "{word}" // a name, where there are too many to keep each
	loop    = "{loop}" // the rest of a path that goes round in circles
	endless = "{deep}" // the rest of a path of more segments than paths of sites have
	rest    = "{rest}" // all that is found below a directory after hardly anything there was new
)

const (
	maxSegments    = 20 // of a path; what follows is endless
	maxLiteral     = 40 // bytes of a name that is kept as it is
	maxKeys        = 8  // of a query
	minID          = 10 // bytes of digits and letters that are an id where they are mixed
	minCycles      = 3  // that a path goes through the same segments until it is a loop
	maxCycleLength = 4  // segments of such a round
)

// A scratch is where walks are made: it is used again for each, so that a page costs no memory.
type scratch struct {
	path           []*node
	names          []string
	segments, keys []string
	buf            []byte
	known          map[string]string // texts
	domains        map[string]string // of hosts
}

const maxKnown = 4096 // texts that are kept so as not to be made again

// text is that of some bytes.
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

// domain is the registered domain of a host's name.
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

// classify is a segment of a path, or a label of a host, with classes in the place of what changes. plain reports whether
// it is a name without any.
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

// appendRun writes a run of digits and letters.
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

// isID reports whether a run of digits and letters is no word: it is long, and changes between them often, or is of
// hexadecimal digits alone.
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

// isWord reports whether there is no digit in a name.
func isWord(s string) bool { return !strings.ContainsAny(s, "0123456789") }

func isDigit(c byte) bool { return c-'0' <= 9 }

func isAlnum(c byte) bool { return isDigit(c) || (c|0x20)-'a' < 26 }

// findCycle reports whether the last of some segments ends a round that the path has gone through several times, as
// /a/b/a/b/a/b has, and how many segments there are until the first has ended. Numbers may stand side by side: tiles of
// maps are named so.
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

// query is the names of a query's parameters, in order of the alphabet, each once.
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

// plainKey leaves in a parameter's name what does not divide patterns.
func plainKey(r rune) rune {
	if r <= ' ' || r == '/' || r == '?' || r == ':' || r > '~' {
		return '_'
	}
	return r
}
