package weburl

// Most URLs are written as they should be, above all those that were made canonical before. To see that takes one look
// at each byte, and nothing has to be cut, copied or encoded. What is not seen to be so here goes the long way, which
// comes to the same.

// plainAbsolute finds the parts of an http or https URL that is written as it should be, but for an empty path and a
// fragment, which begins at queryEnd. The sets are what is percent-encoded in path and query.
func plainAbsolute[T string | []byte](s T, pathSet, querySet set) (at parts, ok bool) {
	at.scheme = plainScheme(s)
	at.host = at.scheme + uint16(len("://"))
	if at.scheme == 0 || len(s) > MaxLength/3 {
		return at, false
	}
	at.hostEnd = plainHost(s, int(at.host))
	if at.hostEnd == at.host {
		return at, false
	}
	if at.path, ok = plainPort(s, int(at.hostEnd), at.scheme); !ok {
		return at, false
	}
	path := int(at.path)
	if path < len(s) && s[path] == '/' {
		path++
	}
	at.pathEnd, at.queryEnd, ok = plainTail(s, path, pathSet, querySet)
	return at, ok
}

// plainScheme is the length of an http or https scheme in lower case with two slashes behind it, 0 if there is none.
func plainScheme[T string | []byte](s T) uint16 {
	n := len("http")
	switch {
	case len(s) < len("https://") || string(s[:n]) != "http":
		return 0
	case s[n] == 's':
		n++
	}
	if string(s[n:n+len("://")]) != "://" {
		return 0
	}
	return uint16(n)
}

// plainHost is the end of a host name at start that is in lower case and no address; start if there is none.
func plainHost[T string | []byte](s T, start int) (end uint16) {
	i, label := start, start
	for ; i < len(s) && sets[s[i]]&(complexHost|upper) == 0; i++ {
		if s[i] == '.' {
			label = i + 1
		}
	}
	if label == i || '0' <= s[label] && s[label] <= '9' {
		return uint16(start)
	}
	return uint16(i)
}

// plainPort is the end of the authority: start, or that of a port at start, which must not be the scheme's own. The
// scheme is given by its length.
func plainPort[T string | []byte](s T, start int, scheme uint16) (end uint16, ok bool) {
	i, n := start, 0
	if i < len(s) && s[i] == ':' {
		for i++; i < len(s) && i <= start+5 && '0' <= s[i] && s[i] <= '9'; i++ {
			n = n*10 + int(s[i]-'0')
		}
		if i == start+1 || s[start+1] == '0' || n > 65535 || n == defaultPort(schemes[scheme]) {
			return 0, false
		}
	}
	return uint16(i), i == len(s) || s[i] == '/' || s[i] == '?' || s[i] == '#'
}

// schemes are the schemes by length.
var schemes = [...]string{len("http"): "http", len("https"): "https"}

// plainTail finds the ends of a path without dot segments, whose first slash, if it has one, is before start, and of a
// query that stay as they are. A fragment may follow.
func plainTail[T string | []byte](s T, start int, pathSet, querySet set) (pathEnd, queryEnd uint16, ok bool) {
	i, before := start, byte('/')
	pathSet |= backslash
path:
	for ; i < len(s); i++ {
		c := s[i]
		switch {
		case sets[c]&pathSet == 0:
			if before == '/' && (c == '.' || c == '%' && i+1 < len(s) && s[i+1] == '2') { // what may be a dot segment
				return 0, 0, false
			}
		case normalEscape(s, i):
			i += 2
		default:
			break path
		}
		before = c
	}
	pathEnd = uint16(i)
	if i < len(s) && s[i] == '?' {
		for i++; i < len(s); i++ {
			if sets[s[i]]&querySet == 0 {
				continue
			}
			if !normalEscape(s, i) {
				break
			}
			i += 2
		}
	}
	return pathEnd, uint16(i), i == len(s) || s[i] == '#'
}

// normalEscape reports whether a percent-encoded byte begins at i, and in its normal form.
func normalEscape[T string | []byte](s T, i int) bool {
	if s[i] != '%' || i+2 >= len(s) || sets[s[i+1]]&upperHex == 0 || sets[s[i+2]]&upperHex == 0 {
		return false
	}
	high, _ := hexDigit(s[i+1])
	low, _ := hexDigit(s[i+2])
	return sets[high<<4|low]&unreserved == 0
}

// appendPlain appends the canonical form of a reference if that is the reference itself but for a fragment and what it
// lacks of the base: an absolute URL or a path without dot segments. It reports whether it did.
func (p *parser) appendPlain(ref []byte) bool {
	if len(ref) == 0 || len(ref)+len(p.base.href) > MaxLength/3 {
		return false
	}
	switch c := ref[0]; {
	case c == '/':
		pathEnd, queryEnd, ok := plainTail(ref, 1, p.pathSet, p.querySet)
		if !ok || !p.base.IsHTTP() || len(ref) > 1 && ref[1] == '/' {
			return false
		}
		p.baseOrigin()
		p.appendTail(ref, 0, pathEnd, queryEnd)
		return true
	case sets[c]&unreserved == 0 || c == '.':
		return false
	}
	if at, ok := plainAbsolute(ref, p.pathSet, p.querySet); ok {
		p.dst = append(p.dst, ref[:at.path]...)
		if at.pathEnd == at.path {
			p.dst = append(p.dst, '/')
		}
		p.appendTail(ref, at.path, at.pathEnd, at.queryEnd)
		return true
	}
	if !p.base.IsHTTP() || schemeLen(ref) > 0 {
		return false
	}
	pathEnd, queryEnd, ok := plainTail(ref, 0, p.pathSet, p.querySet)
	if !ok {
		return false
	}
	p.baseOrigin()
	p.baseFolder()
	p.dst = append(p.dst, '/')
	p.appendTail(ref, 0, pathEnd, queryEnd)
	return true
}

// appendTail appends a path and a query, which it leaves out if it is empty.
func (p *parser) appendTail(ref []byte, path, pathEnd, queryEnd uint16) {
	if queryEnd == pathEnd+1 {
		queryEnd = pathEnd
	}
	p.dst = append(p.dst, ref[path:queryEnd]...)
}
