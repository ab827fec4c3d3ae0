package fetch

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	"kumo/internal/base/page"
)

// Reread parses a stored response as Get did. resp must have Raw and HeadLen; Reread sets Status, Proto, Header and
// Payload. If the response was truncated or malformed, it returns the available part without an error, since
// resp.Truncated or Malformed records that. A response without a head is an error.
func Reread(resp *page.Response) error {
	if resp.HeadLen <= 0 || resp.HeadLen > len(resp.Raw) {
		return errors.New("reread response: it has no head")
	}
	h := make(http.Header)
	f := framer{maxHead: math.MaxInt64, maxBody: math.MaxInt64, fields: h, chunks: resp.Buffers.Chunks[:0]}
	hd, err := parseHead(resp.Raw[:resp.HeadLen], h)
	if err != nil {
		return fmt.Errorf("reread response: %w", err)
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
		return fmt.Errorf("reread response: %w", err)
	}
	return nil
}
