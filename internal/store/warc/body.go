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

// Response reads the answer in the block. Control characters in its head, which servers send, are spaces: net/http
// refuses them.
func (r *Record) Response() (*http.Response, error) {
	head, body := cutHead(r.Block)
	if len(head) > maxAnswerHead {
		return nil, fmt.Errorf("the head of the answer has more than %d bytes", maxAnswerHead)
	}
	head = bytes.Clone(head)
	for i, c := range head {
		if c < ' ' && c != '\t' && c != '\r' && c != '\n' || c == 0x7f {
			head[i] = ' '
		}
	}
	return http.ReadResponse(bufio.NewReader(io.MultiReader(bytes.NewReader(head), bytes.NewReader(body))), nil)
}

func parseSHA1(text string) (sum [sha1.Size]byte) {
	b, err := base32.StdEncoding.DecodeString(strings.TrimPrefix(text, "sha1:"))
	if err == nil && len(b) == len(sum) {
		copy(sum[:], b)
	}
	return sum
}
