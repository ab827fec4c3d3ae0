package weburl

import (
	"bytes"
	"sync"
)

// Parse parses an absolute URL. If s is already in normal form, the URL uses s instead of a copy. Errors have type
// [*Error].
func Parse(s string) (URL, error) { return URL{}.Resolve(s) }

// Resolve parses ref as a browser does in a document at u: absolute, or relative to u. Nothing can be relative to the
// zero URL or to a URL of a scheme other than http, https and ftp. Errors have type [*Error].
func (u URL) Resolve(ref string) (URL, error) {
	if at, ok := plainAbsolute(ref, encodePath, encodeQuery); ok && at.pathEnd > at.path && int(at.queryEnd) == len(ref) {
		return URL{ref, at}, nil
	}
	room := rooms.Get().(*buffers)
	defer rooms.Put(room)
	p := parser{base: u, dst: room.out[:0], pathSet: encodePath, querySet: encodeQuery}
	if err := p.parse(append(room.in[:0], ref...)); err != nil {
		return URL{}, newError(ref, err)
	}
	v := p.url(ref)
	if len(v.href) > MaxLength/3 && len(v.Canonical().href) > MaxLength {
		return URL{}, newError(ref, ErrTooLong)
	}
	return v, nil
}

// buffers hold a URL while it is being written, because its length is not known before.
type buffers struct{ in, out [MaxLength]byte }

var rooms = sync.Pool{New: func() any { return new(buffers) }}

// A parser appends a URL to dst, component by component, and records where each ends.
type parser struct {
	base              URL
	dst               []byte
	start             int // index in dst at which the URL begins
	at                parts
	canonical         bool // write the canonical form; accept only http and https
	pathSet, querySet set  // bytes to percent-encode in path and query
}

// url returns the written URL. If it equals same, it uses that string instead of a copy.
func (p *parser) url(same string) URL {
	if string(p.dst) == same {
		return URL{same, p.at}
	}
	return URL{string(p.dst), p.at}
}

// pos returns the length of the URL written so far.
func (p *parser) pos() uint16 { return uint16(len(p.dst) - p.start) }

func (p *parser) parse(in []byte) error {
	in = trimSpace(in)
	long := len(in) > MaxLength
	in = removeBreaks(in[:min(len(in), MaxLength)])
	n := schemeLen(in)
	scheme := knownScheme(in[:n])
	switch {
	case p.canonical && (n > 0 && scheme == "" || scheme == "ftp"):
		return ErrScheme
	case long:
		return ErrTooLong
	case n == 0 && !p.base.hierarchical():
		return ErrRelative
	}
	if err := p.write(in, n, scheme); err != nil {
		return err
	}
	if len(p.dst)-p.start > MaxLength {
		return ErrTooLong
	}
	return nil
}

// write writes the URL of an input whose scheme has n bytes; 0 if it has no scheme.
func (p *parser) write(in []byte, n int, scheme string) error {
	switch {
	case n == 0:
		return p.relative(p.base.Scheme(), in)
	case scheme == "":
		p.opaque(in[:n], in[n+1:])
		return nil
	case scheme == p.base.Scheme() && p.base.hierarchical():
		return p.relative(scheme, in[n+1:]) // "http:page" is relative in an http document
	default:
		return p.authority(scheme, trimSlashes(in[n+1:]))
	}
}

// opaque writes a URL of another scheme.
func (p *parser) opaque(scheme, rest []byte) {
	p.dst = append(p.dst, bytes.ToLower(scheme)...)
	p.at.scheme = p.pos()
	p.dst = append(p.dst, ':')
	p.at.host, p.at.hostEnd, p.at.path = p.pos(), p.pos(), p.pos()
	p.dst = appendEncoded(p.dst, rest, encodeControl)
	p.at.pathEnd, p.at.queryEnd = p.pos(), p.pos()
}

// relative writes a URL relative to the base, with the base's scheme.
func (p *parser) relative(scheme string, in []byte) error {
	slashes := len(in) - len(trimSlashes(in))
	if slashes >= 2 {
		return p.authority(scheme, in[slashes:])
	}
	p.baseOrigin()
	end := pathLen(in)
	switch {
	case slashes == 1:
		p.path(in[1:end])
	case end > 0:
		p.baseFolder()
		p.path(in[:end])
	default:
		p.basePath()
		if len(in) == 0 || in[0] != '?' {
			p.baseQuery()
			p.fragment(in)
			return nil
		}
	}
	p.tail(in[end:])
	return nil
}

// tail writes a query and a fragment.
func (p *parser) tail(in []byte) {
	p.at.pathEnd = p.pos()
	end := bytes.IndexByte(in, '#')
	if end < 0 {
		end = len(in)
	}
	if end > 1 || end == 1 && !p.canonical {
		p.dst = append(p.dst, '?')
		p.dst = appendEncoded(p.dst, in[1:end], p.querySet)
	}
	p.at.queryEnd = p.pos()
	p.fragment(in[end:])
}

func (p *parser) fragment(in []byte) {
	if len(in) > 0 && !p.canonical {
		p.dst = append(p.dst, '#')
		p.dst = appendEncoded(p.dst, in[1:], encodeFragment)
	}
}
