package weburl

// AppendCanonical resolves ref against u and appends its canonical form to dst. Only http and https URLs have a
// canonical form; other schemes return [ErrScheme]. Errors are the plain error values, so that a page of mailto links
// costs nothing. On error, dst is returned unchanged.
//
// The canonical form is one spelling for all URLs that are equivalent by the rules of URLs alone, without asking the
// server. Parsing yields lower case and IDNA for the host, no default port, no dot segments, and "/" for an empty path.
// In addition, user, password, fragment and an empty query are dropped. Percent-encoding is normalized as in RFC 3986:
// unreserved characters are decoded, reserved ones stay, and all others are encoded, including percent signs that begin
// no escape. Hexadecimal digits are in upper case. The canonical form of a canonical URL is the URL itself. [Rules] can
// normalize further.
func (u URL) AppendCanonical(dst, ref []byte) ([]byte, error) {
	p := parser{base: u, dst: dst, start: len(dst), canonical: true, pathSet: canonicalPath, querySet: canonicalQuery}
	if p.appendPlain(ref) {
		return p.dst, nil
	}
	if err := p.parse(ref); err != nil {
		return dst, err
	}
	if p.dst[p.start] != 'h' { // relative to an ftp URL
		return dst, ErrScheme
	}
	return p.dst, nil
}

// Canonical returns the canonical form of the URL; see [URL.AppendCanonical]. URLs of schemes other than http, https
// and ftp are returned unchanged.
func (u URL) Canonical() URL {
	if !u.hierarchical() || u.isCanonical() {
		return u
	}
	room := rooms.Get().(*buffers)
	defer rooms.Put(room)
	p := parser{base: u, dst: room.out[:0], canonical: true, pathSet: canonicalPath, querySet: canonicalQuery}
	p.baseOrigin()
	p.basePath()
	p.baseQuery()
	return p.url(u.href)
}

// isCanonical reports whether the URL is canonical, looking at each byte once. It may return false for a canonical URL.
func (u URL) isCanonical() bool {
	at, ok := plainAbsolute(u.href, canonicalPath, canonicalQuery)
	return ok && at.path < at.pathEnd && at.queryEnd != at.pathEnd+1 && int(at.queryEnd) == len(u.href)
}
