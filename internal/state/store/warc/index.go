package warc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"kumo/internal/base/field"
)

// An IndexLine is what a CDXJ line says of a record.
type IndexLine struct {
	URL, MIME, Digest, File string // Digest with its "sha1:"
	Time                    time.Time
	Status                  int
	Offset, Length          int64
}

// ParseIndexLine reads a line as the store writes it, without its end. The key must be the URL's. Members that it does
// not know are ignored: a newer kumo has written them.
func ParseIndexLine(line []byte) (x IndexLine, err error) {
	key, rest, _ := strings.Cut(string(line), " ")
	stamp, text, _ := strings.Cut(rest, " ")
	var v struct{ URL, MIME, Status, Digest, Length, Offset, Filename string }
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return x, fmt.Errorf("not a CDXJ line: %w", err)
	}
	if want := SURT(v.URL); key != want && key != OldKey(v.URL) {
		return x, fmt.Errorf("its key is %q, that of its URL is %q", key, want)
	}
	x = IndexLine{URL: v.URL, MIME: v.MIME, Digest: v.Digest, File: v.Filename}
	if x.Time, err = time.Parse("20060102150405", stamp); err != nil {
		return x, fmt.Errorf("not a CDXJ line: %w", err)
	}
	var errLength, errOffset error
	x.Length, errLength = strconv.ParseInt(v.Length, 10, 64)
	x.Offset, errOffset = strconv.ParseInt(v.Offset, 10, 64)
	if err := errors.Join(errLength, errOffset); err != nil {
		return x, fmt.Errorf("not a CDXJ line: %w", err)
	}
	if x.Status, err = strconv.Atoi(v.Status); err != nil {
		return x, fmt.Errorf("not a CDXJ line: %w", err)
	}
	return x, nil
}

// AppendIndexLine writes a line that [ParseIndexLine] reads, with its end.
func AppendIndexLine(b []byte, x *IndexLine) []byte {
	b = append(appendSURT(b, x.URL), ' ')
	b = x.Time.UTC().AppendFormat(b, "20060102150405")
	b = field.JSON(append(b, ` {"url":`...), x.URL)
	b = field.JSON(append(b, `,"mime":`...), x.MIME)
	return fmt.Appendf(b, `,"status":"%d","digest":%q,"length":"%d","offset":"%d","filename":%q}`+"\n", x.Status, x.Digest,
		x.Length, x.Offset, x.File)
}
