package warc

import (
	"crypto/sha1"
	"net/http"
	"strconv"
	"strings"

	"kumo/internal/base/field"
	"kumo/internal/base/page"
)

// appendLine appends a record's CDXJ line up to the length. Offset and file name follow when the record is appended to
// the file. All values are strings, as pywb writes and expects them.
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

// status returns the status of the response. For a 304 it is 200, the status of the page that is unchanged, since only
// pages with status 200 are revalidated.
func status(rec *page.Record) int {
	if isUnmodified(rec) {
		return http.StatusOK
	}
	return rec.Response.Status
}

// mime returns the media type for the index; "unk" if none was declared.
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
