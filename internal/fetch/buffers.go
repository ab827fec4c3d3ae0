package fetch

import "kumo/internal/page"

// What a Response takes along to its next exchange.
const (
	maxKept   = 256 << 10 // bytes of a buffer
	maxFields = 100       // of a header
)

// reset clears resp but for the buffers that it owns.
func reset(resp *page.Response) {
	raw, out, payload, body := resp.Raw, resp.RequestRaw, resp.Payload, resp.Body
	if overlap(body, payload) || overlap(body, raw) {
		body = nil
	}
	if overlap(payload, raw) {
		payload = nil
	}
	fields := resp.Header
	if len(fields) > maxFields {
		fields = nil
	}
	clear(fields)
	*resp = page.Response{Raw: kept(raw), RequestRaw: kept(out), Payload: kept(payload), Body: kept(body), Header: fields}
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
