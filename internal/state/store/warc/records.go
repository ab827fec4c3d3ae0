package warc

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kumo/internal/base/page"
)

const (
	fieldsType       = "application/warc-fields"
	responseType     = "application/http;msgtype=response"
	requestType      = "application/http;msgtype=request"
	identicalPayload = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	notModified      = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
)

// visit builds the records of a visit, the response first, and the index line of the response. It returns the id and
// the length of the response record.
func (d *draft) visit(rec *page.Record) (id string, length int64) {
	d.setShared(rec)
	d.payload = d.payloadDigest(rec)
	id = newID()
	switch {
	case rec.Response.HeadLen == 0:
		length = d.resource(rec, id)
	case rec.Revisit != nil:
		length = d.revisit(rec, id)
	default:
		length = d.response(rec, id)
	}
	if rec.Response.HeadLen > 0 {
		d.line = appendLine(d.line, rec, d.payload, length)
	}
	d.request(rec, id)
	d.metadata(rec, id)
	d.conversion(rec, id)
	d.shots(rec, id)
	return id, length
}

// setShared sets the fields that several records of a visit share.
func (d *draft) setShared(rec *page.Record) {
	d.head = d.head[:0]
	d.url("WARC-Target-URI", rec.URL)
	d.date("WARC-Date", startTime(rec))
	d.visitFields = append(d.visitFields[:0], d.head...)
	d.head = d.head[:0]
	d.addTransport(rec.Response)
	d.wireFields = append(d.wireFields[:0], d.head...)
}

// fields begins a record with the fields of all records of a visit.
func (d *draft) fields(kind, id string) {
	d.begin(kind, id)
	d.head = append(d.head, d.visitFields...)
}

// exchange begins a record of data sent over the wire.
func (d *draft) exchange(kind, id string) {
	d.fields(kind, id)
	d.head = append(d.head, d.wireFields...)
}

// startTime returns the start of the exchange, which is the date of the visit's records.
func startTime(rec *page.Record) time.Time {
	if t := rec.Response.Start; !t.IsZero() {
		return t
	}
	return rec.Time
}

// addTransport adds the server's address and the protocols.
func (d *draft) addTransport(res *page.Response) {
	if addr := res.ServerIP(); addr.IsValid() {
		d.head = append(d.head, "WARC-IP-Address: "...)
		d.head = addr.AppendTo(d.head)
		d.head = append(d.head, "\r\n"...)
	}
	switch res.Proto {
	case "HTTP/2.0":
		d.field("WARC-Protocol", "h2")
	case "HTTP/1.1":
		d.field("WARC-Protocol", "http/1.1")
	case "HTTP/1.0":
		d.field("WARC-Protocol", "http/1.0")
	}
	switch res.TLS {
	case "TLS 1.3":
		d.field("WARC-Protocol", "tls/1.3")
	case "TLS 1.2":
		d.field("WARC-Protocol", "tls/1.2")
	default:
		d.field("WARC-Protocol", strings.ToLower(strings.Replace(res.TLS, " ", "/", 1)))
	}
}

func (d *draft) response(rec *page.Record, id string) int64 {
	res := rec.Response
	d.exchange("response", id)
	d.field("WARC-Truncated", string(res.Truncated))
	d.digest("WARC-Payload-Digest", d.payload)
	if res.RawLen() > maxShort {
		return d.endLong(responseType, rawFrom(res, 0))
	}
	if res.Spooled != nil {
		d.block = append(d.block[:0], make([]byte, res.RawLen())...)
		if n, err := res.Spooled.Raw.ReadAt(d.block, 0); n < len(d.block) {
			d.fail(err)
		}
		return d.end(responseType, d.block, smallText)
	}
	if res.Header.Get("Content-Encoding") != "" {
		return d.end(responseType, res.Raw, smallList)
	}
	return d.end(responseType, res.Raw, smallText)
}

// payloadDigest returns the digest of the body as stored in the record that contains it.
func (d *draft) payloadDigest(rec *page.Record) [sha1.Size]byte {
	res := rec.Response
	switch {
	case rec.Revisit != nil && rec.Revisit.Chunked != [sha1.Size]byte{}:
		return rec.Revisit.Chunked
	case rec.Revisit != nil, payloadIsBody(res):
		return rec.Digest
	case res.Spooled != nil:
		sum := sha1.New()
		d.copy(sum, rawFrom(res, int64(res.HeadLen)))
		return [sha1.Size]byte(sum.Sum(nil))
	}
	return sha1.Sum(res.Raw[res.HeadLen:])
}

// isUnmodified reports whether the server returned 304, so that another record has the page.
func isUnmodified(rec *page.Record) bool {
	return rec.Revisit != nil && rec.Response.Status == http.StatusNotModified
}

// revisit builds a revisit record that refers to the record with the payload. Its block is the head of the response;
// for a 304, it is empty.
func (d *draft) revisit(rec *page.Record, id string) int64 {
	d.exchange("revisit", id)
	block := d.headOf(rec.Response)
	unmodified := isUnmodified(rec)
	if unmodified {
		d.field("WARC-Profile", notModified)
		block = nil
	} else {
		d.field("WARC-Profile", identicalPayload)
	}
	d.ref("WARC-Refers-To", rec.Revisit.ID)
	d.url("WARC-Refers-To-Target-URI", rec.Revisit.URL)
	d.date("WARC-Refers-To-Date", rec.Revisit.Time)
	if !unmodified {
		d.field("WARC-Truncated", string(page.Length)) // as the standard requires for an omitted payload
	}
	d.digest("WARC-Payload-Digest", d.payload)
	return d.end(responseType, block, smallList)
}

// resource stores a response with an incomplete head as plain bytes.
func (d *draft) resource(rec *page.Record, id string) int64 {
	d.exchange("resource", id)
	d.field("WARC-Truncated", string(rec.Response.Truncated))
	return d.end("application/octet-stream", rec.Response.Raw, smallText)
}

func (d *draft) request(rec *page.Record, answer string) {
	if len(rec.Response.RequestRaw) > 0 {
		d.exchange("request", "")
		d.ref("WARC-Concurrent-To", answer)
		d.end(requestType, rec.Response.RequestRaw, smallList)
	}
}

// DocumentURN precedes the URL of a rendered page in the target URI of its conversion record. With the URL alone, pywb
// would index the record, and replay it in place of the response.
const DocumentURN = "urn:dom:"

// conversion stores the document of a rendered page after its scripts.
func (d *draft) conversion(rec *page.Record, answer string) {
	if rec.Rendering == nil {
		return
	}
	d.begin("conversion", "")
	d.url("WARC-Target-URI", DocumentURN+rec.URL)
	d.date("WARC-Date", startTime(rec))
	d.ref("WARC-Refers-To", answer)
	d.end("text/html; charset=utf-8", rec.Rendering.HTML, smallText)
}

// shots stores the pictures of a rendered page, under the URNs that Browsertrix writes and ReplayWeb.page shows.
func (d *draft) shots(rec *page.Record, answer string) {
	if rec.Rendering == nil {
		return
	}
	for _, s := range rec.Rendering.Shots {
		d.begin("resource", "")
		d.url("WARC-Target-URI", shotURN(s.Kind, rec.URL))
		d.date("WARC-Date", startTime(rec))
		d.ref("WARC-Concurrent-To", answer)
		d.end(s.Kind.MediaType(), s.Data, smallText)
	}
}

func shotURN(kind page.ShotKind, url string) string { return "urn:" + string(kind) + ":" + url }

func (d *draft) metadata(rec *page.Record, answer string) {
	d.fields("metadata", "")
	d.ref("WARC-Concurrent-To", answer)
	if linksAreLong(rec) {
		d.longMetadata(rec)
		return
	}
	d.block = appendMetadata(d.block[:0], rec)
	d.end(fieldsType, d.block, smallList)
}

// appendMetadata appends metadata of a visit that is not in its bytes, with Heritrix's field names where they exist.
func appendMetadata(b []byte, rec *page.Record) []byte {
	b = appendDescription(b, rec)
	if rec.Page == nil {
		return b
	}
	for i := range rec.Page.Links {
		b = appendOutlink(b, &rec.Page.Links[i])
	}
	return b
}

// appendDescription appends the metadata without the links.
func appendDescription(b []byte, rec *page.Record) []byte {
	b = appendField(b, "seed", rec.Seed)
	b = appendField(b, "via", rec.From)
	b = appendField(b, "hopsFromSeed", rec.Path)
	b = appendMillis(b, "fetchTimeMs: ", rec.Took)
	b = appendMillis(b, "\r\nexchangeTimeMs: connect=", rec.Response.ConnectTime())
	b = appendMillis(b, " firstByte=", rec.Response.FirstByte)
	b = appendMillis(b, " total=", rec.Response.Total)
	b = append(b, "\r\n"...)
	b = appendField(b, "malformed", rec.Response.Malformed)
	if rec.Content != 0 {
		b = append(b, "contentDigest: xxh64:"...)
		var sum [8]byte
		binary.BigEndian.PutUint64(sum[:], rec.Content)
		b = append(hex.AppendEncode(b, sum[:]), "\r\n"...)
	}
	if rec.Page != nil {
		b = appendField(b, "linksCut", string(rec.Page.LinksCut))
		b = appendField(b, "needsScript", string(rec.Page.NeedsScript))
	}
	if r := rec.Rendering; r != nil {
		b = fmt.Appendf(b, "rendered: requests=%d seconds=%.3f complete=%t\r\n", r.Requests, r.Took.Seconds(), r.Complete)
		b = appendShots(b, r.Shots)
	}
	if rec.Document != nil {
		b = appendDocument(b, rec.Document)
	}
	if isUnmodified(rec) {
		for line := range bytes.Lines(headBytes(rec.Response)) {
			b = appendField(b, "http-response", string(bytes.TrimRight(line, "\r\n")))
		}
	}
	if rec.Page == nil {
		return b
	}
	b = appendField(b, "charset", rec.Page.Charset)
	b = appendField(b, "languages", rec.Page.Lang)
	b = appendField(b, "title", rec.Page.Title)
	b = appendField(b, "h1", rec.Page.Heading)
	b = appendField(b, "description", rec.Page.Description)
	b = appendField(b, "canonical", rec.Page.Canonical)
	for _, v := range rec.Page.Variants { // "hreflang: LANG URL"
		b = append(b, "hreflang: "...)
		b = append(appendToken(b, v.Lang), ' ')
		b = append(appendToken(b, v.URL), "\r\n"...)
	}
	b = appendField(b, "nearDuplicateOf", rec.NearDuplicate)
	b = appendField(b, "robots", rec.Page.Robots.Meta)
	if rec.Usage != nil {
		b = appendField(b, "usage", string(rec.Usage.JSON()))
	}
	return appendField(b, "withheld", rec.Withheld)
}

// appendDocument appends the metadata of a document as JSON, as in pages.jsonl.
func appendDocument(b []byte, d *page.Document) []byte {
	value, err := json.Marshal(d)
	if err != nil { // strings and integers always have a JSON form
		return b
	}
	return appendField(b, "document", string(value))
}

// appendShots appends the kinds and lengths of a page's pictures: "screenshots: view=4711 pdf=815".
func appendShots(b []byte, shots []page.Shot) []byte {
	if len(shots) == 0 {
		return b
	}
	b = append(b, "screenshots:"...)
	for _, s := range shots {
		b = fmt.Appendf(b, " %s=%d", s.Kind, len(s.Data))
	}
	return append(b, "\r\n"...)
}

func appendMillis(b []byte, name string, d time.Duration) []byte {
	return strconv.AppendInt(append(b, name...), d.Milliseconds(), 10)
}

// appendOutlink appends a link as "outlink: URL HOP KIND".
func appendOutlink(b []byte, link *page.Link) []byte {
	b = append(b, "outlink: "...)
	b = appendToken(b, link.URL)
	b = append(b, ' ', max(link.Kind.Hop(), '-'), ' ')
	b = append(b, link.Kind.String()...)
	return append(b, "\r\n"...)
}

func appendField(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, name...)
	b = append(b, ": "...)
	b = appendText(b, value)
	return append(b, "\r\n"...)
}

// warcinfo builds the first record of a file.
func (d *draft) warcinfo(cfg *Config, fileName string) {
	b := appendField(d.block[:0], "software", cfg.Software)
	b = appendField(b, "format", "WARC File Format 1.1")
	b = appendField(b, "conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/")
	b = appendField(b, "isPartOf", cfg.Name)
	b = appendField(b, "hostname", cfg.Hostname)
	for _, info := range cfg.Info {
		b = appendField(b, info[0], info[1])
	}
	d.block = b
	d.begin("warcinfo", "")
	d.date("WARC-Date", cfg.Now())
	d.field("WARC-Filename", fileName)
	d.end(fieldsType, b, smallList)
}

func newID() string { return string(appendID(make([]byte, 0, len("urn:uuid:")+36))) }

// appendID appends a random UUID (version 4) as a URN. It must be unique but not secret, so a fast random generator is
// enough.
func appendID(dst []byte) []byte {
	var u [16]byte
	binary.LittleEndian.PutUint64(u[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(u[8:], rand.Uint64())
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	dst = append(dst, "urn:uuid:"...)
	for i, part := range [...][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return dst
}
