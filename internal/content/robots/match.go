package robots

import "strings"

// matches reports whether pattern matches a prefix of target; both must be in normal form. "*" in a pattern matches any
// octets, "$" at its end the target's end.
//
// Each literal between two stars is searched once, at its leftmost position after the previous one. The leftmost
// position leaves the most text for the rest, so no backtracking is needed and the time is linear.
func matches(pattern, target string) bool {
	pattern, anchored := strings.CutSuffix(pattern, "$")
	literal, pattern, wild := strings.Cut(pattern, "*")
	if !strings.HasPrefix(target, literal) {
		return false
	}
	target = target[len(literal):]
	for wild {
		literal, pattern, wild = strings.Cut(pattern, "*")
		if anchored && !wild {
			return strings.HasSuffix(target, literal)
		}
		at := strings.Index(target, literal)
		if at < 0 {
			return false
		}
		target = target[at+len(literal):]
	}
	return !anchored || target == ""
}
