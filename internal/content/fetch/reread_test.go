package fetch

import (
	"bytes"
	"reflect"
	"testing"

	"kumo/internal/base/page"
)

func TestAnAnswerThatIsReadAgainIsTheSame(t *testing.T) {
	for name, raw := range map[string]string{
		"a length":       "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\nx-a: 2\r\n\r\nhello",
		"chunks":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nT: 1\r\n\r\n",
		"until close":    "HTTP/1.0 404 Not Found\r\nETag: \"x\"\r\n\r\nhello",
		"cut in a chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\nhel",
		"no body":        "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n",
		"folded":         "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
	} {
		c := newClient(t, Config{AllowPrivate: true})
		url := answering(t, raw, true)
		var resp page.Response
		if err := c.Get(t.Context(), Request{URL: url}, &resp); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again := page.Response{Raw: bytes.Clone(resp.Raw), HeadLen: resp.HeadLen, Truncated: resp.Truncated,
			Malformed: resp.Malformed}
		if err := Reread(&again); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if again.Status != resp.Status || again.Proto != resp.Proto || !bytes.Equal(again.Payload, resp.Payload) ||
			!reflect.DeepEqual(again.Header, resp.Header) {
			t.Errorf("%s: %d %s %v %q, not %d %s %v %q", name, again.Status, again.Proto, again.Header, again.Payload,
				resp.Status, resp.Proto, resp.Header, resp.Payload)
		}
	}
}

func TestBytesWithoutAHeadAreNoAnswer(t *testing.T) {
	for _, r := range []page.Response{{}, {Raw: []byte("HTTP/1.1 200"), HeadLen: 0}, {Raw: []byte("x"), HeadLen: 9},
		{Raw: []byte("nonsense\r\n\r\n"), HeadLen: 12}} {
		if err := Reread(&r); err == nil {
			t.Errorf("%q of head length %d is read", r.Raw, r.HeadLen)
		}
	}
}
