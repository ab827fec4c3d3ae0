package warc

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/base32"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// BodyDigest returns the SHA-1 of the response body without chunks, by which a crawl detects duplicates; zero if it
// cannot be computed from the record. By contrast, WARC-Payload-Digest covers the body as stored, with chunks.
func (r *Record) BodyDigest() (sum [sha1.Size]byte) {
	kind := r.Fields["WARC-Type"]
	answer, err := r.Response()
	if err == nil {
		defer answer.Body.Close()
	}
	switch {
	case kind == "revisit" && len(r.Block) == 0, err != nil && kind != "resource":
		return sum
	case err != nil || len(answer.TransferEncoding) == 0:
		return parseSHA1(r.Fields["WARC-Payload-Digest"])
	case kind == "revisit":
		return sum
	}
	h := sha1.New()
	if _, err := io.Copy(h, answer.Body); err != nil {
		return sum // kumo itself accepts slightly malformed chunks
	}
	return [sha1.Size]byte(h.Sum(nil))
}

const maxAnswerHead = 64 << 20 // bytes; net/http copies a line several times

// Response parses the response in the block. Its head may contain errors that browsers accept and net/http does not.
func (r *Record) Response() (*http.Response, error) {
	head, body := cutHead(r.Block)
	if len(head) > maxAnswerHead {
		return nil, fmt.Errorf("response head exceeds %d bytes", maxAnswerHead)
	}
	head = normalizeHead(head)
	return http.ReadResponse(bufio.NewReader(io.MultiReader(bytes.NewReader(head), bytes.NewReader(body))), nil)
}

// normalizeHead changes a response head so that net/http reads it as package fetch reads the original. "http" becomes
// upper case, and control characters become spaces. Blanks before a colon and lines without a colon are removed.
// Repeated equal lengths or "chunked" codings are merged.
func normalizeHead(head []byte) []byte {
	line, fields, _ := strings.Cut(string(head), "\n")
	proto, rest, _ := strings.Cut(line, " ")
	plain := make([]byte, 0, len(head)+1)
	plain = append(append(append(plain, strings.ToUpper(proto)...), ' '), rest...)
	plain = append(plain, '\n')
	var length, coding string
	for fields != "" {
		var field string
		field, fields = cutField(fields)
		if isBlank(field[0]) || strings.Trim(field, "\r\n") == "" {
			plain = append(plain, field...)
			continue
		}
		name, value, ok := strings.Cut(field, ":")
		if !ok {
			continue
		}
		name = strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == '\n' || r == '\r' }), "")
		name = strings.TrimRight(name, " \t")
		said := &length
		switch {
		case strings.EqualFold(name, "Transfer-Encoding"):
			said = &coding
		case !strings.EqualFold(name, "Content-Length"):
			said = nil
		}
		if one := commonValue(value); said != nil && one != "" {
			if *said == one {
				continue
			}
			*said, value = one, " "+one+"\r\n"
		}
		plain = append(append(append(plain, name...), ':'), value...)
	}
	for i, c := range plain {
		if c < ' ' && c != '\t' && c != '\r' && c != '\n' || c == 0x7f {
			plain[i] = ' '
		}
	}
	return plain
}

// cutField splits off a field with its continuation lines.
func cutField(fields string) (field, rest string) {
	for n := 0; ; {
		i := strings.IndexByte(fields[n:], '\n')
		if i < 0 {
			return fields, ""
		}
		if n += i + 1; n == len(fields) || !isBlank(fields[n]) || strings.Trim(fields[:n], "\r\n") == "" {
			return fields[:n], fields[n:]
		}
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// commonValue returns the value of all members of a list, in lower case; "" if they differ.
func commonValue(list string) (one string) {
	for i, member := range strings.Split(list, ",") {
		member = strings.ToLower(strings.Trim(member, " \t\r\n"))
		if i > 0 && member != one {
			return ""
		}
		one = member
	}
	return one
}

func parseSHA1(text string) (sum [sha1.Size]byte) {
	b, err := base32.StdEncoding.DecodeString(strings.TrimPrefix(text, "sha1:"))
	if err == nil && len(b) == len(sum) {
		copy(sum[:], b)
	}
	return sum
}
