package fetch

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"

	"kumo/internal/base/page"
	"kumo/internal/content/inflate"
)

// Errors of Decode, other than those of a broken stream.
var (
	ErrTooLong = errors.New("decoded body is longer than the limit")
	ErrBomb    = errors.New("decoded body is too many times longer than its coded form")
	ErrCoding  = errors.New("unknown or too many content codings")
)

const (
	maxCodings = 4
	maxRatio   = 200     // decoded length to coded length; text rarely exceeds 20
	ratioFloor = 1 << 20 // decoded bytes that are allowed at any ratio
)

// A Decoder removes content codings. It is safe for concurrent use.
type Decoder struct{ wideSlots chan struct{} }

// NewDecoder returns a Decoder that uses at most the given number of wide windows (Brotli and zstd, up to 16 MiB each)
// at a time; 0: no limit.
func NewDecoder(wide int) *Decoder {
	d := &Decoder{}
	if wide > 0 {
		d.wideSlots = make(chan struct{}, wide)
	}
	return d
}

// Decode decodes with a Decoder that has no limit on wide windows. Use it if only a few calls run at a time.
func Decode(resp *page.Response, limit int64) error { return new(Decoder).Decode(resp, limit) }

// Decode fills resp.Body with the payload of resp, decoded as Content-Encoding in resp.Header names, up to limit bytes.
// On an error it keeps the data that it could decode, and returns an *Error with one of the errors above or the
// decoder's error. If the coding is unknown, or the payload does not begin like its coding, the body is the unchanged
// payload. An [ErrDisk] is not the response's fault: the payload is on disk and cannot be read.
func (d *Decoder) Decode(resp *page.Response, limit int64) error {
	resp.Body, resp.FullBody = resp.Payload, nil // set by an earlier call with a lower limit
	codings, err := contentCodings(resp.Header)
	if err != nil {
		codings = nil
	}
	switch {
	case len(codings) > 0 && resp.PayloadLen() > 0:
		resp.Body, err = d.decode(resp, codings, limit)
		resp.Buffers.Body = resp.Body
	case resp.Spooled != nil:
		var problem error
		resp.Body, problem = load(resp, limit)
		resp.Buffers.Body, err = resp.Body, cmp.Or(err, problem)
	case int64(len(resp.Payload)) > limit:
		resp.Body = resp.Payload[:limit]
		err = cmp.Or(err, ErrTooLong)
	}
	if errors.Is(err, ErrTooLong) {
		resp.FullBody = func() io.Reader { return decoded(resp, codings) }
	}
	if err != nil {
		return &Error{Failure: page.Malformed, Op: "decode", URL: resp.URL, Err: err}
	}
	return nil
}

// decoded returns a reader of the decoded payload. It fails when it detects a decompression bomb.
func decoded(resp *page.Response, codings []coding) io.Reader {
	in := resp.PayloadReader()
	if resp.Spooled != nil {
		in = bufio.NewReaderSize(fromDisk{in}, 64<<10)
	}
	for _, c := range slices.Backward(codings) {
		d := c.pool.New().(decoder)
		if err := d.Reset(in); err != nil {
			return &bounded{excess: fmt.Errorf("%s: %w", c.name, err)}
		}
		in = &bounded{r: d, left: max(maxRatio*resp.PayloadLen(), ratioFloor), excess: ErrBomb, name: c.name}
	}
	return in
}

// ErrDisk means that a response stored on disk cannot be read.
var ErrDisk = errors.New("cannot read the temporary file")

// load reads a payload that is on disk into memory.
func load(resp *page.Response, limit int64) ([]byte, error) {
	size := min(resp.PayloadLen(), limit)
	dst := slices.Grow(resp.Buffers.Body[:0], int(size))[:size]
	if n, err := resp.Spooled.Payload.ReadAt(dst, 0); err != nil && int64(n) < size {
		return dst[:n], fmt.Errorf("%w: %w", ErrDisk, err)
	}
	if size < resp.PayloadLen() {
		return dst, ErrTooLong
	}
	return dst, nil
}

// fromDisk distinguishes disk errors from decoding errors.
type fromDisk struct{ r io.Reader }

func (f fromDisk) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", ErrDisk, err)
	}
	return n, err
}

// contentCodings returns a header's codings in the order of their application, without identity.
func contentCodings(h http.Header) ([]coding, error) {
	var list []coding
	for _, value := range h["Content-Encoding"] {
		for name := range strings.SplitSeq(value, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if name == "" || name == "identity" {
				continue
			}
			c, ok := knownCodings[name]
			// no server needs two wide windows, and each needs megabytes
			if !ok || len(list) == maxCodings || c.wide && slices.ContainsFunc(list, coding.isWide) {
				return nil, fmt.Errorf("%w: %.100q", ErrCoding, value)
			}
			list = append(list, c)
		}
	}
	return list, nil
}

// decode appends the decoded payload to the body buffer.
func (d *Decoder) decode(resp *page.Response, codings []coding, most int64) ([]byte, error) {
	limit, excess := most, ErrTooLong
	if ratio := max(maxRatio*resp.PayloadLen(), ratioFloor); ratio < most {
		limit, excess = ratio, ErrBomb
	}
	dst := resp.Buffers.Body[:0]
	if len(codings) == 1 && codings[0].whole != nil && resp.Spooled == nil {
		return decodeWhole(dst, resp.Payload, codings[0], limit, excess)
	}
	if d.wideSlots != nil && slices.ContainsFunc(codings, coding.isWide) {
		d.wideSlots <- struct{}{}
		defer func() { <-d.wideSlots }()
	}
	return decodeLayers(dst, resp, codings, limit, excess)
}

// decodeWhole appends to dst the payload, decoded in one call without a reader. Nearly all responses take this path.
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

// decodeLayers appends to dst the payload, decoded by a chain of readers.
func decodeLayers(dst []byte, resp *page.Response, codings []coding, limit int64, excess error) ([]byte, error) {
	payload := resp.PayloadReader()
	if resp.Spooled != nil {
		payload = bufio.NewReaderSize(fromDisk{payload}, 64<<10)
	}
	src := &released{payload}
	defer src.release()
	var in io.Reader = src
	for i, c := range slices.Backward(codings) {
		d := c.pool.Get().(decoder)
		defer c.pool.Put(d)
		if err := d.Reset(in); err != nil {
			if i == len(codings)-1 && errors.Is(err, gzip.ErrHeader) {
				dst, _ = readAll(dst, io.LimitReader(resp.PayloadReader(), limit))
			}
			return dst, fmt.Errorf("%s: %w", c.name, err)
		}
		in = &bounded{r: d, left: limit + 1, excess: excess, name: c.name}
	}
	dst, err := readAll(slices.Grow(dst, int(min(4*resp.PayloadLen(), limit)+1)), in)
	if int64(len(dst)) > limit {
		return dst[:limit], excess
	}
	return dst, err
}

// A released reader drops its source, which an unused decoder would otherwise retain.
type released struct{ io.Reader }

func (r *released) release() { r.Reader = nil }

// readAll appends the rest of r to dst.
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
