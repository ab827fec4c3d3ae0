package fetch

import "kumo/internal/page"

// What a Response takes along to its next exchange.
const (
	maxKept   = 256 << 10 // bytes of a buffer
	maxFields = 100       // of a header
)

// reset clears resp but for its buffers, unless they have become huge.
func reset(resp *page.Response) {
	b := &resp.Buffers
	fields := b.Header
	if len(fields) > maxFields {
		fields = nil
	}
	clear(fields)
	*resp = page.Response{Buffers: page.Buffers{Raw: kept(b.Raw), Request: kept(b.Request), Chunks: kept(b.Chunks), Body: kept(b.Body),
		Header: fields}}
}

func kept(b []byte) []byte {
	if cap(b) > maxKept {
		return nil
	}
	return b[:0]
}
