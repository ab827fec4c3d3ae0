package fetch

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	"kumo/internal/base/page"
)

// Reread makes the parts of an answer out of its bytes, as Get did when it came: resp has Raw and HeadLen, and gets
// Status, Proto, Header and Payload. What was cut short or damaged then gives what there is of it, without an error:
// resp.Truncated or Malformed has said so. An answer without a head is an error.
func Reread(resp *page.Response) error {
	if resp.HeadLen <= 0 || resp.HeadLen > len(resp.Raw) {
		return errors.New("read an answer again: it has no head")
	}
	h := make(http.Header)
	f := framer{maxHead: math.MaxInt64, maxBody: math.MaxInt64, fields: h, chunks: resp.Buffers.Chunks[:0]}
	hd, err := parseHead(resp.Raw[:resp.HeadLen], h)
	if err != nil {
		return fmt.Errorf("read an answer again: %w", err)
	}
	resp.Status, resp.Proto, resp.Header = hd.status, hd.proto, h
	resp.Payload = resp.Raw[resp.HeadLen:]
	if !hd.chunked || strings.HasPrefix(hd.proto, "HTTP/2") {
		return nil
	}
	f.head, f.pos, f.state = hd, resp.HeadLen, chunkHead
	_, err = f.advance(resp.Raw)
	resp.Payload, resp.Buffers.Chunks = f.chunks, f.chunks
	if err != nil && resp.Malformed == "" && resp.Truncated == page.Whole {
		return fmt.Errorf("read an answer again: %w", err)
	}
	return nil
}
