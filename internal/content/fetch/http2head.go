package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// A section holds the fields of one field block of an HTTP/2 response (RFC 9113, 8): an interim response, the head, or
// trailers, which are discarded.
type section struct {
	trailers  bool
	status    int
	raw       []byte      // the head in the form of HTTP/1.1, for WARC records
	fields    http.Header // the same fields by name
	values    []string    // backing array of the values in fields
	regular   bool        // a field other than a pseudo-field was received
	forbidden string      // the first field that is not allowed in HTTP/2; such fields are dropped
	n         int         // fields so far
	err       error

	// grow returns raw with space for want more bytes, or an error if there is no memory.
	grow func(raw []byte, want int) ([]byte, error)
}

// decode decodes a field block into sec and advances the state of the stream.
func (s *session) decode(block []byte, sec *section) error {
	sec.trailers = s.state == inBody
	s.section = sec
	_, err := s.decoder.Write(block)
	s.section = nil
	switch err = errors.Join(err, s.decoder.Close()); {
	case sec.err != nil:
		return sec.err
	case err != nil:
		return protocolError("field block: %v", err)
	case sec.trailers && !s.endsStream:
		return protocolError("HEADERS in the middle of the body")
	case !sec.trailers && sec.status == 0:
		return protocolError("no :status")
	case sec.status/100 == 1 && s.endsStream:
		return protocolError("the stream ends with status %d", sec.status)
	}
	if s.endsStream {
		s.state = ended
	} else if sec.status/100 != 1 {
		s.state = inBody
	}
	if !sec.trailers {
		sec.begin()
		sec.raw = append(sec.raw, "\r\n"...)
	}
	return nil
}

// emit receives a field from the decoder. It ignores all fields after the first error, since the connection then ends.
func (s *session) emit(f hpack.HeaderField) {
	sec := s.section
	if s.heads += int64(f.Size()); s.heads > s.maxHead {
		sec.err = errLongHead
	} else {
		sec.err = sec.add(f.Name, f.Value)
	}
	if sec.err != nil {
		s.decoder.SetEmitEnabled(false)
	}
}

func (sec *section) add(name, value string) error {
	switch {
	case strings.HasPrefix(name, ":"):
		return sec.addPseudo(name, value)
	case !lowerName(name):
		return protocolError("field name %.*q", quoted, name)
	case !validValue(value):
		return protocolError("field %.*q", quoted, name+": "+value)
	case sec.trailers:
		return nil
	case notOverHTTP2[name]:
		if sec.forbidden == "" {
			sec.forbidden = name
		}
		return nil
	}
	if sec.n++; sec.n > maxFields {
		return fmt.Errorf("%w: more than %d fields", errSyntax, maxFields)
	}
	sec.begin()
	name, value = textproto.CanonicalMIMEHeaderKey(name), strings.Trim(value, " \t")
	if want := len(name) + len(value) + len(": \r\n\r\n"); cap(sec.raw)-len(sec.raw) < want &&
		len(sec.raw)+want > readSize {
		var err error
		if sec.raw, err = sec.grow(sec.raw, want); err != nil {
			return err
		}
	}
	sec.raw = append(append(append(append(sec.raw, name...), ": "...), value...), "\r\n"...)
	if had := sec.fields[name]; had != nil {
		sec.fields[name] = append(had, value)
		return nil
	}
	if len(sec.values) == cap(sec.values) {
		sec.values = make([]string, 0, 16)
	}
	sec.values = append(sec.values, value)
	n := len(sec.values)
	// a capacity limit, so that append does not overwrite the next field's value
	sec.fields[name] = sec.values[n-1 : n : n]
	return nil
}

func (sec *section) addPseudo(name, value string) error {
	status, err := strconv.ParseUint(value, 10, 16)
	switch {
	case name != ":status" || sec.trailers || sec.regular || sec.status != 0:
		return protocolError("misplaced field %.*q", quoted, name)
	case len(value) != 3 || err != nil || status < minStatus || status == http.StatusSwitchingProtocols:
		return protocolError("status %.*q", quoted, value)
	}
	sec.status = int(status)
	return nil
}

// begin writes the status line before the first field.
func (sec *section) begin() {
	if !sec.regular {
		sec.regular = true
		sec.raw = fmt.Appendf(sec.raw[:0], "HTTP/1.1 %03d %s\r\n", sec.status, http.StatusText(sec.status))
	}
}

// lowerName reports whether a name is a token without upper-case letters.
func lowerName(name string) bool {
	for i := range len(name) {
		if c := name[i]; c == ' ' || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return validName(name)
}

// notOverHTTP2 are the fields that control an HTTP/1 connection. Servers behind a proxy send them by mistake, and
// browsers ignore them. A WARC record has the form of HTTP/1.1, where such fields would describe the body wrongly.
var notOverHTTP2 = map[string]bool{"connection": true, "proxy-connection": true, "keep-alive": true,
	"transfer-encoding": true, "upgrade": true}
