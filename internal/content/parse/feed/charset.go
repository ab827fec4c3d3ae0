package feed

import (
	"bufio"
	"bytes"
	"regexp"
	"strings"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// encoding matches the charset in an XML declaration.
var encoding = regexp.MustCompile(`^\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']`)

// decoded returns in as UTF-8, by its byte order mark or its XML declaration.
func decoded(in *bufio.Reader) (*bufio.Reader, error) {
	head, _ := in.Peek(512)
	if bytes.HasPrefix(head, []byte("\xEF\xBB\xBF")) || bytes.HasPrefix(head, []byte("\xFE\xFF")) ||
		bytes.HasPrefix(head, []byte("\xFF\xFE")) {
		return bufio.NewReader(transform.NewReader(in, unicode.BOMOverride(transform.Nop))), nil
	}
	label := encoding.FindSubmatch(head)
	if label == nil {
		return in, nil
	}
	enc, err := htmlindex.Get(string(label[1]))
	if err != nil || enc == unicode.UTF8 || strings.HasPrefix(strings.ToLower(string(label[1])), "utf-16") {
		return in, nil //nolint:nilerr // read as UTF-8, as which its URLs can be told
	}
	return bufio.NewReader(transform.NewReader(in, enc.NewDecoder())), nil
}
