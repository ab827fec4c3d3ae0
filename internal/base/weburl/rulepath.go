package weburl

import (
	"bytes"
	"strings"
)

// appendPath appends a path with the rules applied.
func (r Rules) appendPath(dst []byte, path string) []byte {
	mark := len(dst)
	if r&DropSession != 0 {
		dst = appendSessionless(dst, path)
	} else {
		dst = append(dst, path...)
	}
	if r&DropIndex == 0 {
		return dst
	}
	last := mark + bytes.LastIndexByte(dst[mark:], '/') + 1
	if isIndex(dst[last:]) {
		dst = dst[:last]
	}
	return dst
}

// appendSessionless appends a path without the session ids that servers write into it if there is no cookie: a
// parameter of a segment (";jsessionid=1A2B", Java and PHP), or a segment of its own
// ("/(S(lit3py55t21z5v55vlm25s55))/", ASP.NET).
func appendSessionless(dst []byte, path string) []byte {
	path = path[1:]
	for more := true; more; {
		var segment string
		if segment, path, more = strings.Cut(path, "/"); more && isSessionSegment(segment) {
			continue
		}
		dst = append(dst, '/')
		dst = appendParams(dst, segment)
	}
	return dst
}

// appendParams appends a segment without parameters that are session ids, unless the result would be a dot segment.
func appendParams(dst []byte, segment string) []byte {
	name, params, more := strings.Cut(segment, ";")
	if !more || name == "." || name == ".." {
		return append(dst, segment...)
	}
	dst = append(dst, name...)
	for more {
		var param string
		param, params, more = strings.Cut(params, ";")
		if key, value, _ := strings.Cut(param, "="); !isSession(key, value) {
			dst = append(dst, ';')
			dst = append(dst, param...)
		}
	}
	return dst
}

func isSessionSegment(segment string) bool {
	id, ok := strings.CutPrefix(segment, "(S(")
	if !ok {
		return false
	}
	id, ok = strings.CutSuffix(id, "))")
	return ok && len(id) == 24 && hasOnly(id, alphanumeric)
}

// isIndex reports whether the last segment of a path is an index file, which servers return for a folder.
func isIndex(segment []byte) bool {
	var room [20]byte
	name, ext, _ := bytes.Cut(lower(segment, &room), []byte{'.'})
	return len(segment) <= len(room) && (string(name) == "index" || string(name) == "default") && indexTypes[string(ext)]
}

var indexTypes = map[string]bool{
	"html": true, "htm": true, "shtml": true, "xhtml": true, "phtml": true, "php": true, "php3": true, "php4": true,
	"php5": true,
	"asp":  true, "aspx": true, "jsp": true, "cfm": true, "cgi": true, "pl": true,
}
