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

// BodyDigest is the SHA-1 of the answer's body without its chunks, by which a crawl tells what is the same; zero if it
// does not follow from the record. WARC-Payload-Digest is that of the body as it lies in the record, chunks and all.
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
		return sum // kumo reads chunks that are not quite right, too
	}
	return [sha1.Size]byte(h.Sum(nil))
}

const maxAnswerHead = 64 << 20 // bytes; net/http copies a line several times

// Response reads the answer in the block, whose head may have what browsers accept and net/http refuses.
func (r *Record) Response() (*http.Response, error) {
	head, body := cutHead(r.Block)
	if len(head) > maxAnswerHead {
		return nil, fmt.Errorf("the head of the answer has more than %d bytes", maxAnswerHead)
	}
	head = normalizeHead(head)
	return http.ReadResponse(bufio.NewReader(io.MultiReader(bytes.NewReader(head), bytes.NewReader(body))), nil)
}

// normalizeHead returns an answer's head in a form that net/http reads as package fetch reads the original: "http" is in upper
// case, control characters are spaces, blanks before a colon and lines without one are gone, and a length or "chunked"
// that is said several times is said once.
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

// cutField cuts off a field with the lines that continue it.
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

// commonValue returns what all members of a list are, in lower case; "" if they differ.
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
