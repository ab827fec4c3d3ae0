package synthweb

import (
	"bytes"
	"strconv"

	"kumo/internal/lab/dice"
)

var pathWords = [...]string{"about", "archive", "articles", "blog", "books", "docs", "events", "forum", "guide", "help",
	"history", "index", "library", "lists", "manual", "maps", "music", "news", "notes", "papers", "people", "photos",
	"press", "projects", "reports", "research", "science", "stories", "support", "team", "topics", "wiki"}

// appendPath appends the path and query of a resource. In raw form, non-ASCII characters are bytes in the host's
// charset; otherwise, they are encoded as in a canonical URL.
func (w *Web) appendPath(dst []byte, r Ref, raw bool) []byte {
	info := &kinds[r.Kind]
	switch r.Kind {
	case Page:
		return w.appendPagePath(dst, r, raw)
	case Copy:
		dst = w.appendPagePath(dst, r, raw)
		if bytes.IndexByte(dst, '?') >= 0 {
			return append(dst, "&copy=1"...)
		}
		return append(dst, "?copy=1"...)
	case Robots:
		return append(dst, "/robots.txt"...)
	case Session:
		dst = append(dst, "/shop/item-"...)
		dst = strconv.AppendUint(dst, uint64(r.N/4), 10)
		dst = append(dst, ".html;jsessionid=S"...)
	default:
		dst = append(dst, info.dir...)
	}
	dst = strconv.AppendUint(dst, uint64(r.N), 10)
	return append(dst, info.suffix...)
}

// appendPagePath appends the path of an ordinary page in one of several common forms. The page's number is always the
// last run of digits.
func (w *Web) appendPagePath(dst []byte, r Ref, raw bool) []byte {
	dst = append(dst, '/')
	if r.N == 0 {
		return dst
	}
	x := dice.Hash(w.cfg.Seed^0x70617468, uint64(r.Host), uint64(r.N))
	one, two := pathWords[x>>8%32], pathWords[x>>16%32]
	end := ""
	switch x % 10 {
	case 0:
		dst = append(append(dst, one...), "/?p="...)
	case 1:
		dst, end = append(append(dst, one...), '/'), "/"
	case 2:
		dst = append(dst, 'p')
	case 3:
		word := w.hosts[r.Host].tongue.path(x >> 8)
		if raw {
			dst = append(dst, word.raw...)
		} else {
			dst = append(dst, word.escaped...)
		}
		dst, end = append(dst, '/'), ".html"
	case 4:
		dst = append(append(append(dst, "view.php?cat="...), one...), "&id="...)
	case 5:
		dst = append(append(append(dst, '~'), one...), '/')
		dst, end = append(append(dst, two...), "%20page-"...), ".htm"
	default:
		dst = append(append(dst, one...), '/')
		dst, end = append(append(dst, two...), '/'), ".html"
	}
	dst = strconv.AppendUint(dst, uint64(r.N), 10)
	return append(dst, end...)
}

// locate finds the resource at a request's target (path and query) on a host.
func (w *Web) locate(host uint32, target []byte) Ref {
	switch string(target) {
	case "/":
		return Ref{Host: host}
	case "/robots.txt":
		return Ref{Host: host, Kind: Robots}
	}
	var spelled, path, buf [256]byte
	if bytes.IndexByte(target, '%') >= 0 {
		target = unescape(spelled[:0], target)
	}
	r := Ref{Host: host, Kind: kindOf(target)}
	digits := target
	if r.Kind == Copy {
		digits = target[:len(target)-len("?copy=1")]
	}
	r.N = lastNumber(digits)
	switch h := &w.hosts[host]; {
	case r.Kind == Calendar && !h.traits.has(Trap):
	case r.Kind == App && (w.cfg.ScriptShare == 0 || r.N != 0):
	case r.Kind == Data && !w.needsScript(Ref{Host: host, N: r.N}):
	case r.Kind != Calendar && int(r.N) >= h.pages:
	case bytes.Equal(unescape(buf[:0], w.appendPath(path[:0], r, false)), target):
		return r
	}
	return Ref{Host: host, Kind: Unknown}
}

// kindOf returns the kind of a resource by its directory.
func kindOf(target []byte) Kind {
	path := target
	if end := bytes.IndexAny(path, "?;"); end >= 0 {
		path = path[:end]
	}
	if k, ok := kindOfDir[string(path[:bytes.LastIndexByte(path, '/')+1])]; ok {
		return k
	}
	if bytes.HasSuffix(target, []byte("copy=1")) && len(target) > len("?copy=1") {
		return Copy
	}
	return Page
}

// lastNumber returns the last run of digits in s, at most nine of them; 0 if there is none.
func lastNumber(s []byte) (n uint32) {
	end := len(s)
	for end > 0 && !isDigit(s[end-1]) {
		end--
	}
	for i, unit := end, uint32(1); i > 0 && i > end-9 && isDigit(s[i-1]); i, unit = i-1, unit*10 {
		n += uint32(s[i-1]-'0') * unit
	}
	return n
}

func isDigit(c byte) bool { return c-'0' < 10 }

// unescape appends s with the percent-escapes of letters, digits, space, -._~ and non-ASCII bytes decoded, which does
// not change its meaning.
func unescape(dst, s []byte) []byte {
	for len(s) > 0 {
		c, n := s[0], 1
		if c == '%' && len(s) >= 3 {
			if b, err := strconv.ParseUint(string(s[1:3]), 16, 8); err == nil && plain(byte(b)) {
				c, n = byte(b), 3
			}
		}
		dst, s = append(dst, c), s[n:]
	}
	return dst
}

func plain(c byte) bool {
	return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 || c == ' ' || c == '-' || c == '.' || c == '_' ||
		c == '~'
}
