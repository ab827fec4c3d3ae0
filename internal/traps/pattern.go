package traps

import (
	"sort"
	"strings"
)

// The classes that stand in a pattern for what differs from URL to URL.
const (
	number  = "{n}"    // digits
	day     = "{date}" // a day or a month: 2026-11-24, 2026-11
	id      = "{id}"   // digits and letters as no word has them: a UUID, a session's key
	word    = "{word}" // a name, where there are too many to keep each
	loop    = "{loop}" // the rest of a path that goes round in circles
	endless = "{deep}" // the rest of a path of more segments than paths of sites have
)

const (
	maxSegments = 20 // of a path; what follows is endless
	maxLiteral  = 40 // bytes of a name that is kept as it is
	maxKeys     = 8  // of a query
	minID       = 10 // bytes of digits and letters that are an id where they are mixed
	rounds      = 3  // that a path goes through the same segments until it is a loop
	maxRound    = 4  // segments of such a round
)

// shape is a segment of a path, or a label of a host, with classes in the place of what changes. plain reports whether
// it is a name without any.
func shape(segment string) (s string, plain bool) {
	if isWord(segment) {
		if len(segment) > maxLiteral {
			return word, false
		}
		return segment, true
	}
	if isDay(segment) {
		return day, false
	}
	var out strings.Builder
	for at := 0; at < len(segment); {
		end := at
		for end < len(segment) && isAlnum(segment[end]) {
			end++
		}
		if end == at {
			out.WriteByte(segment[at])
			at++
			continue
		}
		appendRun(&out, segment[at:end])
		at = end
	}
	if s = out.String(); len(s) > maxLiteral {
		return word, false
	}
	return s, !strings.Contains(s, "{")
}

// appendRun writes a run of digits and letters.
func appendRun(out *strings.Builder, run string) {
	if isID(run) {
		out.WriteString(id)
		return
	}
	for at := 0; at < len(run); at++ {
		if !isDigit(run[at]) {
			out.WriteByte(run[at])
			continue
		}
		out.WriteString(number)
		for at+1 < len(run) && isDigit(run[at+1]) {
			at++
		}
	}
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
func isDay(s string) bool {
	s = strings.NewReplacer("-", "", "_", "", ".", "").Replace(s)
	if len(s) != 6 && len(s) != 8 || strings.Trim(s, "0123456789") != "" {
		return false
	}
	century, month := s[:2], s[4:6]
	if century != "19" && century != "20" || month < "01" || month > "12" {
		return false
	}
	return len(s) == 6 || s[6:] >= "01" && s[6:] <= "31"
}

// isWord reports whether there is no digit in a name.
func isWord(s string) bool { return !strings.ContainsAny(s, "0123456789") }

func isDigit(c byte) bool { return c-'0' <= 9 }

func isAlnum(c byte) bool { return isDigit(c) || (c|0x20)-'a' < 26 }

// goesRound reports whether the last of some segments ends a round that the path has gone through several times, as
// /a/b/a/b/a/b has, and how many segments there are until the first has ended. Numbers may stand side by side: tiles of
// maps are named so.
func goesRound(segments []string) (once int, round bool) {
	n := len(segments)
	for size := 1; size <= maxRound && size*rounds <= n; size++ {
		same, named := true, false
		for i := n - size*(rounds-1); i < n && same; i++ {
			same = segments[i] == segments[i-size]
			named = named || strings.Trim(segments[i], "0123456789") != ""
		}
		if same && named {
			return n - size*(rounds-1), true
		}
	}
	return 0, false
}

// queryShape is the names of a query's parameters, in order of the alphabet, each once.
func queryShape(query string) string {
	var keys []string
	for part := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(part, "=")
		if key = strings.Map(plainKey, key); len(key) > maxLiteral {
			key = word
		} else {
			key, _ = shape(key)
		}
		keys = append(keys, key)
		if len(keys) > 4*maxKeys {
			break
		}
	}
	sort.Strings(keys)
	kept := keys[:0]
	for _, key := range keys {
		if len(kept) == 0 || kept[len(kept)-1] != key {
			kept = append(kept, key)
		}
	}
	if len(kept) > maxKeys {
		kept = append(kept[:maxKeys], "...")
	}
	return "?" + strings.Join(kept, "&")
}

// plainKey leaves in a parameter's name what does not divide patterns.
func plainKey(r rune) rune {
	if r <= ' ' || r == '/' || r == '?' || r == ':' || r > '~' {
		return '_'
	}
	return r
}
