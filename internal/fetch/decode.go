package fetch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"

	"kumo/internal/inflate"
	"kumo/internal/page"
)

// What Decode can find wrong, other than a broken stream.
var (
	ErrTooLong = errors.New("decoded body is longer than the limit")
	ErrBomb    = errors.New("decoded body is too many times longer than its coded form")
	ErrCoding  = errors.New("unknown or too many content codings")
)

const (
	maxCodings = 4
	maxRatio   = 200     // of decoded to coded length; text rarely exceeds 20
	ratioFloor = 1 << 20 // decoded bytes that are allowed at any ratio
)

// Decode fills resp.Body from resp.Payload by the Content-Encoding that resp.Header names, at most limit bytes of it. When
// something is wrong it keeps what could be read and returns an *Error with one of the errors above or the decoder's. A payload
// whose coding is not known, or that does not even begin like its coding, is kept as it is.
func Decode(resp *page.Response, limit int64) error {
	resp.Body = resp.Payload
	codings, err := contentCodings(resp.Header)
	switch {
	case err == nil && len(codings) > 0 && len(resp.Payload) > 0:
		resp.Body, err = decode(resp.Buffers.Body[:0], resp.Payload, codings, limit)
		resp.Buffers.Body = resp.Body
	case int64(len(resp.Payload)) > limit:
		resp.Body = resp.Payload[:limit]
		err = cmp.Or(err, ErrTooLong)
	}
	if err != nil {
		return &Error{Failure: page.Malformed, Op: "decode", URL: resp.URL, Err: err}
	}
	return nil
}

// contentCodings lists a header's codings in the order they were applied, identity left out.
func contentCodings(h http.Header) ([]coding, error) {
	var list []coding
	for _, value := range h["Content-Encoding"] {
		for name := range strings.SplitSeq(value, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if name == "" || name == "identity" {
				continue
			}
			c, ok := knownCodings[name]
			if !ok || len(list) == maxCodings {
				return nil, fmt.Errorf("%w: %.100q", ErrCoding, value)
			}
			list = append(list, c)
		}
	}
	return list, nil
}

// decode appends to dst what payload holds under its codings.
func decode(dst, payload []byte, codings []coding, most int64) ([]byte, error) {
	limit, excess := most, ErrTooLong
	if ratio := max(maxRatio*int64(len(payload)), ratioFloor); ratio < most {
		limit, excess = ratio, ErrBomb
	}
	if len(codings) == 1 && codings[0].whole != nil {
		return decodeWhole(dst, payload, codings[0], limit, excess)
	}
	return decodeLayers(dst, payload, codings, limit, excess)
}

// decodeWhole appends to dst what payload holds under a coding that needs no reader, as nearly all answers have it.
func decodeWhole(dst, payload []byte, c coding, limit int64, excess error) ([]byte, error) {
	d := inflaters.Get().(*inflate.Decoder)
	defer inflaters.Put(d)
	dst, err := c.whole(d, dst, payload, int(min(limit, math.MaxInt)))
	switch {
	case err == nil:
		return dst, nil
	case errors.Is(err, inflate.ErrLimit):
		return dst, excess
	case errors.Is(err, inflate.ErrHeader):
		dst = append(dst, payload[:min(int64(len(payload)), limit)]...)
	}
	return dst, fmt.Errorf("%s: %w", c.name, err)
}

// decodeLayers appends to dst what payload holds under codings of which each reads from the one around it.
func decodeLayers(dst, payload []byte, codings []coding, limit int64, excess error) ([]byte, error) {
	bytesIn := bytes.NewReader(payload)
	defer bytesIn.Reset(nil) // a decoder at rest holds on to it
	var src io.Reader = bytesIn
	for i, c := range slices.Backward(codings) {
		d := c.pool.Get().(decoder)
		defer c.pool.Put(d)
		if err := d.Reset(src); err != nil {
			if i == len(codings)-1 && errors.Is(err, gzip.ErrHeader) {
				dst = append(dst, payload[:min(int64(len(payload)), limit)]...)
			}
			return dst, fmt.Errorf("%s: %w", c.name, err)
		}
		src = &bounded{r: d, left: limit + 1, excess: excess, name: c.name}
	}
	dst, err := readAll(slices.Grow(dst, int(min(4*int64(len(payload)), limit)+1)), src)
	if int64(len(dst)) > limit {
		return dst[:limit], excess
	}
	return dst, err
}

// readAll appends to dst what r has.
func readAll(dst []byte, r io.Reader) ([]byte, error) {
	for idle := 0; idle < 100; idle++ {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, 512)
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return dst, err
		case n > 0:
			idle = 0
		}
	}
	return dst, io.ErrNoProgress
}
