package weburl

// A fast path. Most URLs are in normal form already, particularly canonical ones. This can be seen by looking at each
// byte once, without splitting, copying or encoding. Everything else takes the general path, with the same result.

// plainAbsolute splits an http or https URL into parts if it is in normal form, except for an empty path and a
// fragment, which begins at queryEnd. The sets are the bytes to percent-encode in path and query.
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

// plainScheme returns the length of the scheme if s begins with "http://" or "https://", otherwise 0.
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

// plainHost returns the end of the host name at start if it is in lower case and not an IP address, otherwise start.
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

// plainPort returns the end of the authority: start, or the end of a port at start. The default port of the scheme is
// not in normal form. The scheme is given by its length.
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

// schemes has the schemes by length.
var schemes = [...]string{len("http"): "http", len("https"): "https"}

// plainTail returns the ends of a path without dot segments and of a query, if both are in normal form. The path's
// first slash, if any, is before start. A fragment may follow.
func plainTail[T string | []byte](s T, start int, pathSet, querySet set) (pathEnd, queryEnd uint16, ok bool) {
	i, before := start, byte('/')
	pathSet |= backslash
path:
	for ; i < len(s); i++ {
		c := s[i]
		switch {
		case sets[c]&pathSet == 0:
			if before == '/' && (c == '.' || c == '%' && i+1 < len(s) && s[i+1] == '2') { // may be a dot segment
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

// normalEscape reports whether a percent-encoded byte in normal form begins at i.
func normalEscape[T string | []byte](s T, i int) bool {
	if s[i] != '%' || i+2 >= len(s) || sets[s[i+1]]&upperHex == 0 || sets[s[i+2]]&upperHex == 0 {
		return false
	}
	high, _ := hexDigit(s[i+1])
	low, _ := hexDigit(s[i+2])
	return sets[high<<4|low]&unreserved == 0
}

// appendPlain appends the canonical form of a reference if that takes no more than adding the base and dropping a
// fragment: an absolute URL, or a path without dot segments. It reports whether it did.
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

// appendTail appends a path and a query. An empty query is omitted.
func (p *parser) appendTail(ref []byte, path, pathEnd, queryEnd uint16) {
	if queryEnd == pathEnd+1 {
		queryEnd = pathEnd
	}
	p.dst = append(p.dst, ref[path:queryEnd]...)
}
