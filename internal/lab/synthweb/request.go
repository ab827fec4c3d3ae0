package synthweb

import (
	"bytes"
	"errors"
)

const maxRequestHead = 16 << 10 // maximum size of a request's head in bytes

var errBadRequest = errors.New("malformed or unsupported request")

// A request is the head of a request. Its slices alias the buffer that it was read from.
type request struct {
	head      bool // HEAD rather than GET
	target    []byte
	host      []byte
	agent     []byte
	gzip      bool   // the client accepts gzip
	old       bool   // HTTP/1.0: no chunked coding
	noneMatch []byte // If-None-Match
	since     []byte // If-Modified-Since
	last      bool   // close the connection after the answer
}

// headEnd returns the length of the head at the beginning of buf; 0 if it is not complete.
func headEnd(buf []byte) int {
	if end := bytes.Index(buf, []byte("\r\n\r\n")); end >= 0 {
		return end + 4
	}
	return 0
}

// parse parses a complete head. A target in absolute form, as for proxies, also sets the host.
func (r *request) parse(head []byte) error {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	method, line, _ := bytes.Cut(line, []byte(" "))
	target, version, ok := bytes.Cut(line, []byte(" "))
	*r = request{head: string(method) == "HEAD", target: target, old: string(version) == "HTTP/1.0"}
	r.last = r.old
	if !ok || !r.head && string(method) != "GET" || !bytes.HasPrefix(version, []byte("HTTP/1.")) {
		return errBadRequest
	}
	for len(rest) > 2 {
		var field []byte
		field, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		name, value, _ := bytes.Cut(field, []byte(":"))
		r.field(name, bytes.TrimSpace(value))
	}
	if url, ok := bytes.CutPrefix(target, []byte("http://")); ok {
		slash := bytes.IndexByte(url, '/')
		if slash < 0 {
			return errBadRequest
		}
		r.host, r.target = url[:slash], url[slash:]
	}
	if len(r.target) == 0 || r.target[0] != '/' {
		return errBadRequest
	}
	return nil
}

func (r *request) field(name, value []byte) {
	is := func(s string) bool { return len(s) == len(name) && bytes.EqualFold(name, []byte(s)) }
	switch {
	case is("Host"):
		r.host = value
	case is("User-Agent"):
		r.agent = value
	case is("Connection"):
		r.last = r.last && !bytes.EqualFold(value, []byte("keep-alive")) || bytes.EqualFold(value, []byte("close"))
	case is("If-None-Match"):
		r.noneMatch = value
	case is("If-Modified-Since"):
		r.since = value
	case is("Accept-Encoding"):
		r.gzip = bytes.Contains(value, []byte("gzip"))
	}
}
