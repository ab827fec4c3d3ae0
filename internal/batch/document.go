package batch

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/content/fetch"
)

// A Document is the result of a requested URL. Redirects, failures and refused URLs have one, too. So every URL of a
// round has a Document, except URLs that are deferred to the next round.
type Document struct {
	Collection, URL string // the key

	From       string // URL that redirects here, or page with the link; "" for a seed
	RedirectTo string // redirect target; "" if it does not redirect
	Depth      int    // hops from a seed
	Redirects  int    // consecutive redirects that led here
	Seed       bool

	Time time.Time // when the request began
	Took time.Duration

	Failure page.Failure // "" if there is an answer
	Rule    string       // rule that refused the URL: "robots", "include", …; "" if it was requested
	Detail  string       // Failure or Rule, explained

	Status    int            // 0 without an answer
	Addr      netip.AddrPort // server address
	Request   []byte         // as sent, secrets redacted
	Raw       []byte         // answer: exact for HTTP/1; for HTTP/2 a header written from the fields, and the body
	HeadLen   int            // Raw[:HeadLen] is the status line and header fields with the empty line
	Truncated page.Truncation
	Malformed string // defects of the answer

	Digest     page.Digest  // SHA-1 of the body without transfer coding; if Unmodified, of the stored body
	Unmodified bool         // the server confirmed the known version (304)
	Change     page.Recrawl // compared to the known version; set by merge
	SameAs     Stored       // Document with the body, if Change is Unchanged; set by merge

	// Properties of the page; zero if the answer is not a page.
	Type       string // media type detected from the body
	Charset    string // WHATWG name; "" if it is not text
	CharsetHow string // "bom", "header", "meta", "detected" or "default"
	Lang       string // main language of its text: ISO 639-1 or 639-3, "other"; "" if unknown
	Share      float32
	Confidence float32 // of the detection of Lang
	Title      string
	Headline   string // from its main text
	Text       string // main text, one line per paragraph; "" if none was found
	Simhash    uint64 // of Text; 0 without text
	MetaFollow bool   // robots may follow its links (no nofollow)
	MetaIndex  bool   // it may be indexed (no noindex)
	NoArchive  bool   // it must not be archived
}

// Key returns the record's key.
func (d *Document) Key() []byte { return Key(d.Collection, d.URL) }

// Append appends the record's value.
func (d *Document) Append(b []byte) []byte {
	w := startValue(b, KindDocument)
	putTime(&w, d.Time)
	w.Uint(uint64(max(d.Took, 0)))
	w.String(d.From)
	w.String(d.RedirectTo)
	w.Uint(uint64(d.Depth))
	w.Uint(uint64(d.Redirects))
	w.Uint(flags(d.Seed, d.Unmodified, d.MetaFollow, d.MetaIndex, d.NoArchive))
	w.String(string(d.Change))
	d.SameAs.put(&w)
	w.String(string(d.Failure))
	w.String(d.Rule)
	w.String(d.Detail)
	w.Uint(uint64(d.Status))
	addr, _ := d.Addr.MarshalBinary() // never fails
	w.Bytes(addr)
	w.String(string(d.Truncated))
	w.String(d.Malformed)
	putArray(&w, d.Digest)
	w.String(d.Type)
	w.String(d.Charset)
	w.String(d.CharsetHow)
	w.String(d.Lang)
	putShare(&w, d.Share)
	putShare(&w, d.Confidence)
	w.String(d.Title)
	w.String(d.Headline)
	w.String(d.Text)
	w.Uint(d.Simhash)
	w.Bytes(d.Request)
	w.Uint(uint64(d.HeadLen))
	w.Bytes(d.Raw)
	return w
}

// ReadDocument decodes a record. Request and Raw alias value.
func ReadDocument(key, value []byte) (d Document, err error) {
	r, err := openRecord(key, value, KindDocument, &d.Collection, &d.URL)
	if err != nil {
		return d, err
	}
	d.Time, d.Took = getTime(r), time.Duration(r.Uint()&(1<<63-1))
	d.From, d.RedirectTo = r.String(), r.String()
	d.Depth, d.Redirects = count(r.Uint()), count(r.Uint())
	f := r.Uint()
	d.Seed, d.Unmodified, d.MetaFollow, d.MetaIndex, d.NoArchive = f&1 != 0, f&2 != 0, f&4 != 0, f&8 != 0, f&16 != 0
	d.Change, d.SameAs = page.Recrawl(r.String()), getStored(r)
	d.Failure, d.Rule, d.Detail = page.Failure(r.String()), r.String(), r.String()
	d.Status = count(r.Uint())
	if addr := r.Bytes(); len(addr) > 0 && d.Addr.UnmarshalBinary(addr) != nil {
		r.Bad = true
	}
	d.Truncated, d.Malformed = page.Truncation(r.String()), r.String()
	d.Digest = getArray[page.Digest](r)
	d.Type, d.Charset, d.CharsetHow, d.Lang = r.String(), r.String(), r.String(), r.String()
	d.Share, d.Confidence = getShare(r), getShare(r)
	d.Title, d.Headline, d.Text, d.Simhash = r.String(), r.String(), r.String(), r.Uint()
	d.Request = r.Bytes()
	d.HeadLen = count(r.Uint())
	if d.Raw = r.Bytes(); d.HeadLen > len(d.Raw) {
		r.Bad = true
	}
	return d, checkRead(r, KindDocument)
}

// IsPage reports whether the answer contains a page: no redirect, error or 304.
func (d *Document) IsPage() bool { return d.Status == http.StatusOK && d.Failure == "" && d.Rule == "" }

// Response rebuilds the answer as it was fetched: header fields and the body without transfer coding, with its content
// coding (see fetch.Decode). resp aliases the document. It fails if there was no answer.
func (d *Document) Response(resp *page.Response) error {
	resp.Buffers.Empty()
	*resp = page.Response{URL: d.URL, RequestRaw: d.Request, Raw: d.Raw, HeadLen: d.HeadLen, Truncated: d.Truncated,
		Malformed: d.Malformed, Addr: d.Addr, Start: d.Time, Total: d.Took, Buffers: resp.Buffers}
	if err := fetch.Reread(resp); err != nil {
		return fmt.Errorf("document of %s: %w", d.URL, err)
	}
	return nil
}

// DecodedResponse is like Response, with the body's content coding removed as far as possible.
func (d *Document) DecodedResponse(resp *page.Response) error {
	if err := d.Response(resp); err != nil {
		return err
	}
	if err := fetch.Decode(resp, maxDecoded); errors.Is(err, fetch.ErrDisk) {
		return err
	}
	return nil
}

// validators returns the validators for the next conditional request: those of the answer or, if it is a 304, the known
// ones.
func (d *Document) validators(was *Known) (etag string, modified time.Time) {
	var resp page.Response
	if d.Response(&resp) == nil {
		if etag = resp.Header.Get("ETag"); len(etag) > maxETag {
			etag = ""
		}
		if at, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil && at.Unix() > 0 {
			modified = at.UTC()
		}
	}
	if d.Unmodified { // a 304 need not repeat them
		etag = cmp.Or(etag, was.ETag)
		if modified.IsZero() {
			modified = was.Modified
		}
	}
	return etag, modified
}
