package warc

import (
	"strings"

	"kumo/internal/base/field"
)

// OldKey returns the index key that early versions of kumo used for a URL. Indexes of old crawls contain it. It leaves
// escapes and session ids unchanged, so for some URLs it is not the key that readers look up.
func OldKey(url string) string { return string(appendOldKey(nil, url)) }

func appendOldKey(dst []byte, url string) []byte {
	host, port, path, query, ok := cutURL(url)
	if !ok {
		return field.Token(dst, strings.ToLower(url))
	}
	dst = appendOldHost(dst, strings.ToLower(host))
	if port != "" {
		dst = field.Token(append(dst, ':'), port)
	}
	dst = appendOldPath(append(dst, ')'), strings.ToLower(path))
	if query == "" {
		return dst
	}
	return field.Token(append(dst, '?'), sortParameters(strings.ToLower(query)))
}

// appendOldHost appends the labels in reverse order, without a leading www.
func appendOldHost(dst []byte, host string) []byte {
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if first, rest, ok := strings.Cut(host, "."); ok && isWWW(first) {
		host = rest
	}
	for {
		i := strings.LastIndexByte(host, '.')
		dst = field.Token(dst, host[i+1:])
		if i < 0 {
			return dst
		}
		dst = append(dst, ',')
		host = host[:i]
	}
}

// appendOldPath appends the nonempty segments, or "/" if there are none.
func appendOldPath(dst []byte, path string) []byte {
	empty := true
	for segment := range strings.SplitSeq(path, "/") {
		if segment != "" {
			dst = field.Token(append(dst, '/'), segment)
			empty = false
		}
	}
	if empty {
		dst = append(dst, '/')
	}
	return dst
}
