package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// A head is a response's status line and the properties of its framing.
type head struct {
	proto   string // such as "HTTP/1.1"
	status  int
	length  int64 // of the body; -1 if the end of the connection ends it
	chunked bool
	closing bool // the server closes the connection after this response
}

// maxFields limits the fields of a head. In a map, a field takes many times its size on the wire.
const maxFields = 512

const quoted = 80 // bytes of a malformed line that an error quotes

var errSyntax = errors.New("malformed response")

func malformed(what string, line string) error {
	return fmt.Errorf("%w: %s: %.*q", errSyntax, what, quoted, line)
}

// parseHead parses a complete head with lines that end with CRLF or LF. The fields are stored in h, which must be
// empty, with canonical names and values that share one string. Like net/http, it rejects heads that a proxy and a
// server could read differently. It accepts some heads that browsers or curl accept and net/http rejects: control
// characters in values, blanks before a colon, lines without a colon, a repeated "chunked", and "http" in lower case.
func parseHead(raw []byte, h http.Header) (head, error) {
	text := string(raw)
	line, rest, _ := strings.Cut(text, "\n")
	hd, err := readStatus(strings.TrimSuffix(line, "\r"))
	if err != nil {
		return hd, err
	}
	if err := readFields(rest, h); err != nil {
		return hd, err
	}
	return hd, hd.frame(h)
}

// minStatus is the lowest valid status. 000 could not be told from a missing response.
const minStatus = 100

// readStatus parses a status line (RFC 9112, 4).
func readStatus(line string) (head, error) {
	proto, status, ok := strings.Cut(line, " ")
	proto = strings.ToUpper(proto)
	major, minor, known := http.ParseHTTPVersion(proto)
	if !ok || !known {
		return head{}, malformed("status line", line)
	}
	code, _, _ := strings.Cut(strings.TrimLeft(status, " "), " ")
	n, err := strconv.ParseUint(code, 10, 16)
	if len(code) != 3 || err != nil || n < minStatus {
		return head{}, malformed("status", line)
	}
	return head{proto: proto, status: int(n), length: -1, closing: major < 1 || major == 1 && minor == 0}, nil
}

// readFields parses field lines and the empty line after them.
func readFields(text string, h http.Header) error {
	if text != "" && isBlank(text[0]) {
		return malformed("first field", firstLine(text))
	}
	values := make([]string, 0, min(strings.Count(text, "\n"), maxFields))
	for n := 0; ; n++ {
		var line string
		if line, text = nextField(text); line == "" {
			return nil
		}
		if n == maxFields {
			return fmt.Errorf("%w: more than %d fields", errSyntax, maxFields)
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok && validValue(line) {
			continue
		}
		name = strings.TrimRight(name, " \t")
		if !ok || !validName(name) || !validValue(value) {
			return malformed("field", line)
		}
		if !strings.Contains(name, " ") {
			name = textproto.CanonicalMIMEHeaderKey(name)
		}
		value = strings.Trim(value, " \t") // the right end has a space if a folded line is blank
		if had := h[name]; had != nil {
			h[name] = append(had, value)
			continue
		}
		values = append(values, value)
		n := len(values)
		h[name] = values[n-1 : n : n] // a capacity limit, so that append does not overwrite the next field's value
	}
}

// nextField returns the next field with its continuation lines joined by spaces; "" at the empty line.
func nextField(text string) (line, rest string) {
	line, rest = cutLine(text)
	if line == "" || rest == "" || !isBlank(rest[0]) {
		return line, rest
	}
	var whole strings.Builder
	whole.WriteString(line)
	for rest != "" && isBlank(rest[0]) {
		line, rest = cutLine(rest)
		whole.WriteByte(' ')
		whole.WriteString(line)
	}
	return whole.String(), rest
}

func cutLine(text string) (line, rest string) {
	line, rest, _ = strings.Cut(text, "\n")
	return strings.Trim(strings.TrimSuffix(line, "\r"), " \t"), rest
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// validName reports whether a field's name is a token. It allows spaces inside, since kumo uses no such name.
func validName(name string) bool {
	for i := range len(name) {
		if !inName[name[i]] {
			return false
		}
	}
	return name != ""
}

var inName = func() (ok [256]bool) {
	for c := byte('!'); c < 0x7f; c++ {
		ok[c] = !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, rune(c))
	}
	ok[' '] = true
	return ok
}()

// validValue reports whether a received field value is acceptable. NUL, CR and LF are dangerous, and browsers and curl
// reject the response. Other control characters violate RFC 9110, 5.5, but all clients accept them.
func validValue(value string) bool { return !strings.ContainsAny(value, "\x00\r\n") }

// sendable reports whether a value may be sent: it contains no control characters except tabs.
func sendable(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// frame derives the body's length and whether the connection persists from the fields (RFC 9112, 6.3 and 9.3).
func (hd *head) frame(h http.Header) error {
	if hasToken(h["Connection"], "close") {
		hd.closing = true
	} else if hd.proto == "HTTP/1.0" && hasToken(h["Connection"], "keep-alive") {
		hd.closing = false
	}
	if codings, ok := h["Transfer-Encoding"]; ok {
		delete(h, "Transfer-Encoding")
		if hd.proto != "HTTP/1.0" && hd.proto[:6] != "HTTP/0" { // HTTP/1.0 has no transfer codings
			for coding := range strings.SplitSeq(strings.Join(codings, ","), ",") {
				if !strings.EqualFold(strings.Trim(coding, " \t"), "chunked") {
					return malformed("transfer coding", strings.Join(codings, ", "))
				}
			}
			hd.chunked = true // once, even if both the application and the server in front of it sent the field
		}
	}
	if err := hd.readLength(h); err != nil {
		return err
	}
	if hd.status/100 == 1 || hd.status == http.StatusNoContent || hd.status == http.StatusNotModified {
		hd.length, hd.chunked = 0, false
	}
	if hd.chunked {
		hd.length = -1
		delete(h, "Content-Length") // chunked takes precedence (RFC 9112, 6.3)
	}
	return nil
}

// readLength parses Content-Length. It may be repeated, in several fields or in a list, if all values are equal (RFC
// 9110, 8.6): merged responses contain such fields. Different lengths would be ambiguous.
func (hd *head) readLength(h http.Header) error {
	all, first := h["Content-Length"], ""
	for _, list := range all {
		for value := range strings.SplitSeq(list, ",") {
			value = strings.Trim(value, " \t")
			n, err := strconv.ParseUint(value, 10, 63)
			if err != nil || first != "" && value != first { // 05 and 5 also count as different, as in net/http and browsers
				return malformed("Content-Length", strings.Join(all, ", "))
			}
			hd.length, first = int64(n), value
		}
	}
	if first != "" {
		all[0] = first
		h["Content-Length"] = all[:1]
	}
	return nil
}

// hasToken reports whether one of the comma-separated lists contains token, which must be in lower case.
func hasToken(lists []string, token string) bool {
	for _, list := range lists {
		for list != "" {
			var one string
			one, list, _ = strings.Cut(list, ",")
			if strings.EqualFold(strings.Trim(one, " \t"), token) {
				return true
			}
		}
	}
	return false
}

// isHTTP reports whether the bytes received so far match the beginning of an HTTP/1 status line.
func isHTTP(raw []byte) bool {
	magic := []byte("HTTP/")
	n := min(len(raw), len(magic))
	return bytes.EqualFold(raw[:n], magic[:n])
}
