package fetch

import (
	"bytes"
	"fmt"
	"net/http"

	"kumo/internal/page"
)

// maxKept is the largest buffer that a Response takes along to its next exchange.
const maxKept = 256 << 10

// reset clears resp but for the buffers that it owns.
func reset(resp *page.Response) {
	raw, out, payload, body := resp.Raw, resp.RequestRaw, resp.Payload, resp.Body
	if overlap(body, payload) || overlap(body, raw) {
		body = nil
	}
	if overlap(payload, raw) {
		payload = nil
	}
	*resp = page.Response{Raw: kept(raw), RequestRaw: kept(out), Payload: kept(payload), Body: kept(body)}
}

func kept(b []byte) []byte {
	if cap(b) > maxKept {
		return nil
	}
	return b[:0]
}

// overlap reports whether two slices lie in the same buffer. It relies on all of them reaching to the buffer's end.
func overlap(a, b []byte) bool {
	return cap(a) > 0 && cap(b) > 0 && &a[:cap(a)][cap(a)-1] == &b[:cap(b)][cap(b)-1]
}

var notInHead = map[string]bool{"Transfer-Encoding": true}

// appendHead makes a head out of an HTTP/2 answer's fields, in the form of HTTP/1.1, which readers of WARC files expect. Names are
// sorted: net/http does not keep their order.
func appendHead(dst []byte, answer *http.Response) []byte {
	b := bytes.NewBuffer(dst[:0])
	fmt.Fprintf(b, "HTTP/1.1 %03d %s\r\n", answer.StatusCode, http.StatusText(answer.StatusCode))
	_ = answer.Header.WriteSubset(b, notInHead) // a buffer takes everything
	b.WriteString("\r\n")
	return b.Bytes()
}
