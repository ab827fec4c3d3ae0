package warc

import (
	"crypto/sha1"
	"net/http"
	"strconv"
	"strings"

	"kumo/internal/base/field"
	"kumo/internal/base/page"
)

// appendLine writes a record's CDXJ line up to its length; offset and file are known when the record is appended. All
// values are strings, as pywb writes and expects them.
func appendLine(dst []byte, rec *page.Record, payload [sha1.Size]byte, length int64) []byte {
	dst = appendSURT(dst, rec.URL)
	dst = append(dst, ' ')
	dst = startTime(rec).UTC().AppendFormat(dst, "20060102150405")
	dst = append(dst, ` {"url":`...)
	dst = field.JSON(dst, rec.URL)
	dst = append(dst, `,"mime":`...)
	dst = field.JSON(dst, mime(rec))
	dst = append(dst, `,"status":"`...)
	dst = strconv.AppendInt(dst, int64(status(rec)), 10)
	dst = append(dst, `","digest":"`...)
	dst = appendDigest(dst, payload)
	dst = append(dst, `","length":"`...)
	dst = strconv.AppendInt(dst, length, 10)
	return append(dst, '"')
}

// status is the answer's, or that of the page that it says is as before: only of those is asked whether they are.
func status(rec *page.Record) int {
	if isUnmodified(rec) {
		return http.StatusOK
	}
	return rec.Response.Status
}

// mime is the type that the index gives for a record: "unk" where none was declared.
func mime(rec *page.Record) string {
	switch {
	case rec.Revisit != nil:
		return "warc/revisit"
	case rec.Page != nil && rec.Page.Type != "":
		return rec.Page.Type
	}
	declared, _, _ := strings.Cut(rec.Response.Header.Get("Content-Type"), ";")
	if declared = strings.ToLower(strings.TrimSpace(declared)); declared != "" {
		return declared
	}
	return "unk"
}
