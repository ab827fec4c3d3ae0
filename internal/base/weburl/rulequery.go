package weburl

import (
	"bytes"
	"slices"
	"strings"
)

// appendQuery appends a query with the rules applied, including its question mark. A parameter ends at "&" or ";".
// Sorting separates parameters only at "&", because the meaning of ";" depends on the server.
func (r Rules) appendQuery(dst []byte, query string, scratch []byte) []byte {
	if query == "" {
		return dst
	}
	mark := len(dst)
	dst = append(dst, '?')
	if r&(DropTracking|DropSession) != 0 {
		dst = r.appendKept(dst, query)
	} else {
		dst = append(dst, query...)
	}
	if r&SortQuery != 0 {
		dst = append(dst[:mark+1], sorted(dst[mark+1:], scratch)...)
	}
	if len(dst) == mark+1 {
		return dst[:mark]
	}
	return dst
}

// appendKept appends the parameters that no rule drops, with the separators between them.
func (r Rules) appendKept(dst []byte, query string) []byte {
	first, pair := true, r&DropSession != 0 && hasColdFusion(query)
	for at := 0; at <= len(query); {
		param := query[at : at+paramLen(query[at:])]
		if !r.shouldDrop(param, pair) {
			if !first {
				dst = append(dst, query[at-1])
			}
			first = false
			dst = append(dst, param...)
		}
		at += len(param) + 1
	}
	return dst
}

// paramLen returns the length of the first parameter of a query.
func paramLen(query string) int {
	for i := range len(query) {
		if query[i] == '&' || query[i] == ';' {
			return i
		}
	}
	return len(query)
}

// shouldDrop reports whether a rule drops a parameter. pair is true if the query has a session id in two parts.
func (r Rules) shouldDrop(param string, pair bool) bool {
	name, value, _ := strings.Cut(param, "=")
	switch kindOf(name) {
	case tracking:
		return r&DropTracking != 0
	case session:
		return r&DropSession != 0
	case maybeSession:
		return r&DropSession != 0 && looksRandom(value)
	case coldFusion:
		return pair
	}
	return false
}

// hasColdFusion reports whether a query has both parts of a ColdFusion session id, in any order. A single part can be
// something else.
func hasColdFusion(query string) bool {
	id, token := false, false
	for at := 0; at < len(query); {
		n := paramLen(query[at:])
		if name, _, _ := strings.Cut(query[at:at+n], "="); len(name) > 0 && name[0]|0x20 == 'c' {
			id = id || strings.EqualFold(name, "cfid")
			token = token || strings.EqualFold(name, "cftoken")
		}
		at += n + 1
	}
	return id && token
}

// sorted sorts the parameters by name and omits empty ones. The result uses the memory of scratch or of the query.
func sorted(query, scratch []byte) []byte {
	var few [32][]byte
	params := few[:0]
	for param := range bytes.SplitSeq(query, []byte{'&'}) {
		if len(param) > 0 {
			params = append(params, param)
		}
	}
	slices.SortStableFunc(params, func(a, b []byte) int { return bytes.Compare(nameOf(a), nameOf(b)) })
	for i, param := range params {
		if i > 0 {
			scratch = append(scratch, '&')
		}
		scratch = append(scratch, param...)
	}
	return scratch
}

func nameOf(param []byte) []byte {
	name, _, _ := bytes.Cut(param, []byte{'='})
	return name
}
