package weburl

// AppendCanonical resolves ref against u and appends the canonical form of what it means to dst. Only http and https
// URLs have a place there; others give [ErrScheme]. Errors are the bare reasons, so that a page of mailto links costs
// nothing; dst then comes back as it was.
//
// The canonical form is one spelling for all URLs that name the same thing by the rules of URLs alone, without asking
// the server. Beyond what parsing does (lower case and IDNA for the host, no default port, no dot segments, "/" for an
// empty path), user, password, fragment and an empty query are dropped, and percent-encoding is normalised after RFC
// 3986: unreserved characters are decoded, reserved ones stay as they are, all others are encoded, a percent sign that
// begins no escape among them, with hexadecimal digits in upper case. It is its own canonical form. What goes further
// than that is for [Rules] to do.
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

// Canonical is the URL's canonical form, as [URL.AppendCanonical] describes it. URLs of other schemes than http, https
// and ftp are their own.
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

// isCanonical reports whether the URL is seen, by one look at each byte, to be its own canonical form. It may be all
// the same where it is not.
func (u URL) isCanonical() bool {
	at, ok := plainAbsolute(u.href, canonicalPath, canonicalQuery)
	return ok && at.path < at.pathEnd && at.queryEnd != at.pathEnd+1 && int(at.queryEnd) == len(u.href)
}
