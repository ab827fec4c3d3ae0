package weburl

import "bytes"

// authority writes a URL from its authority on; in begins after the two slashes.
func (p *parser) authority(scheme string, in []byte) error {
	p.scheme(scheme)
	end := authorityLen(in)
	host := in[:end]
	if at := bytes.LastIndexByte(host, '@'); at >= 0 {
		p.user(host[:at])
		host = host[at+1:]
	}
	p.at.host = p.pos()
	host, port := cutPort(host)
	if err := p.host(host); err != nil {
		return err
	}
	p.at.hostEnd = p.pos()
	if err := p.port(scheme, port); err != nil {
		return err
	}
	p.at.path = p.pos()
	in = in[end:]
	end = pathLen(in)
	p.path(in[min(1, end):end])
	p.tail(in[end:])
	return nil
}

func (p *parser) scheme(scheme string) {
	p.dst = append(p.dst, scheme...)
	p.at.scheme = p.pos()
	p.dst = append(p.dst, "://"...)
}

// user writes user name and password. Empty ones are omitted with their punctuation.
func (p *parser) user(in []byte) {
	name, password, _ := bytes.Cut(in, []byte{':'})
	if p.canonical || len(name)+len(password) == 0 {
		return
	}
	p.dst = appendEncoded(p.dst, name, encodeUser)
	if len(password) > 0 {
		p.dst = append(p.dst, ':')
		p.dst = appendEncoded(p.dst, password, encodeUser)
	}
	p.dst = append(p.dst, '@')
}

// port writes ":port", unless it is the default port of the scheme.
func (p *parser) port(scheme string, in []byte) error {
	n := 0
	for _, c := range in {
		if c < '0' || '9' < c {
			return ErrPort
		}
		if n = n*10 + int(c-'0'); n > 65535 {
			return ErrPort
		}
	}
	if len(in) > 0 && n != defaultPort(scheme) {
		p.dst = append(p.dst, ':')
		p.dst = appendInt(p.dst, n)
	}
	return nil
}

func defaultPort(scheme string) int {
	switch scheme {
	case "http":
		return 80
	case "https":
		return 443
	default:
		return 21
	}
}

// baseOrigin writes the base URL up to its path.
func (p *parser) baseOrigin() {
	b := p.base
	if !p.canonical || !b.HasUser() {
		p.dst = append(p.dst, b.href[:b.at.path]...)
		p.at = b.at
		return
	}
	p.scheme(b.Scheme())
	p.at.host = p.pos()
	p.dst = append(p.dst, b.Hostname()...)
	p.at.hostEnd = p.pos()
	p.dst = append(p.dst, b.href[b.at.hostEnd:b.at.path]...)
	p.at.path = p.pos()
}
