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

// An IndexLine is a parsed CDXJ line.
type IndexLine struct {
	URL, MIME, Digest, File string // Digest has the prefix "sha1:"
	Time                    time.Time
	Status                  int
	Offset, Length          int64
}

// ParseIndexLine parses a line as the store writes it, without its end. The key must match the URL. Unknown members,
// which later versions may write, are ignored.
func ParseIndexLine(line []byte) (x IndexLine, err error) {
	key, rest, _ := strings.Cut(string(line), " ")
	stamp, text, _ := strings.Cut(rest, " ")
	var v struct{ URL, MIME, Status, Digest, Length, Offset, Filename string }
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return x, fmt.Errorf("not a CDXJ line: %w", err)
	}
	if want := SURT(v.URL); key != want && key != OldKey(v.URL) {
		return x, fmt.Errorf("key is %q, but the URL's key is %q", key, want)
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

// AppendIndexLine appends a line in the format of [ParseIndexLine], with its end.
func AppendIndexLine(b []byte, x *IndexLine) []byte {
	b = append(appendSURT(b, x.URL), ' ')
	b = x.Time.UTC().AppendFormat(b, "20060102150405")
	b = field.JSON(append(b, ` {"url":`...), x.URL)
	b = field.JSON(append(b, `,"mime":`...), x.MIME)
	return fmt.Appendf(b, `,"status":"%d","digest":%q,"length":"%d","offset":"%d","filename":%q}`+"\n", x.Status, x.Digest,
		x.Length, x.Offset, x.File)
}
