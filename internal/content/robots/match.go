package robots

import "strings"

// matches reports whether pattern matches target from its start; both are in normal form. "*" in a pattern stands for
// any octets, "$" at its end for the target's end.
//
// Each literal between two stars is looked for once, at its leftmost place after the one before: taking it leftmost
// leaves the most to the rest, so there is nothing to go back for and the time is linear.
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
