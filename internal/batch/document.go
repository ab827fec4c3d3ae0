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

// A Document is what came of fetching a URL. A redirect has one of its own, and so has a URL that failed or was
// refused: every URL of a round has a Document, but for one that waits for the next round.
type Document struct {
	Collection, URL string // the key

	From       string // the URL that redirects here, or the page that named it; "" for a seed
	RedirectTo string // where it redirects to; "" if it does not
	Depth      int    // hops from a seed
	Redirects  int    // in a row that led here
	Seed       bool

	Time time.Time // when the request began
	Took time.Duration

	Failure page.Failure // why there is no answer; "" if there is one
	Rule    string       // the rule that refused it: "robots", "include", …; "" if it was fetched
	Detail  string       // Failure or Rule in words

	Status    int            // 0 where there is no answer
	Addr      netip.AddrPort // the server's
	Request   []byte         // as it was sent, secrets redacted
	Raw       []byte         // the answer: exact for HTTP/1; of HTTP/2 a head made from the fields, and the body
	HeadLen   int            // Raw[:HeadLen] is status line and fields with the empty line
	Truncated page.Truncation
	Malformed string // what was wrong with the answer

	Digest     page.Digest  // SHA-1 of the body without transfer coding; where Unmodified, of the one that still holds
	Unmodified bool         // the server says that what is known still holds (304)
	Change     page.Recrawl // by what was known of it; set by merge
	SameAs     Stored       // what has the body, where Found is Unchanged; set by merge

	// What the page says; zero for what is no page.
	Type       string // media type by what the body begins with
	Charset    string // WHATWG name, "" for what is not text
	CharsetHow string // "bom", "header", "meta", "detected" or "default"
	Lang       string // the language most of its text is in: ISO 639-1 or 639-3, "other"; "" if that cannot be told
	Share      float32
	Confidence float32 // in Lang
	Title      string
	Headline   string // of its main text
	Text       string // its main text, a line a paragraph; "" if none was found
	Simhash    uint64 // of that; 0 without
	MetaFollow bool   // robots may follow its links
	MetaIndex  bool   // an index may show it
	NoArchive  bool   // it asks not to be archived
}

// Key is the record's key.
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
	addr, _ := d.Addr.MarshalBinary() // cannot fail
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

// ReadDocument reads a record. Request and Raw are parts of value.
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

// IsPage reports whether a page came, and not a redirect, an error, or word that it is as it was.
func (d *Document) IsPage() bool { return d.Status == http.StatusOK && d.Failure == "" && d.Rule == "" }

// Response makes the answer of the document again, as it was fetched: with its fields and the body without transfer
// coding, its content coding left as it is (see fetch.Decode). What resp holds lies in the document or is new. It fails
// if there was no answer.
func (d *Document) Response(resp *page.Response) error {
	resp.Buffers.Empty()
	*resp = page.Response{URL: d.URL, RequestRaw: d.Request, Raw: d.Raw, HeadLen: d.HeadLen, Truncated: d.Truncated,
		Malformed: d.Malformed, Addr: d.Addr, Start: d.Time, Total: d.Took, Buffers: resp.Buffers}
	if err := fetch.Reread(resp); err != nil {
		return fmt.Errorf("the document of %s: %w", d.URL, err)
	}
	return nil
}

// DecodedResponse is Response with the body's content coding undone, as far as it can be.
func (d *Document) DecodedResponse(resp *page.Response) error {
	if err := d.Response(resp); err != nil {
		return err
	}
	if err := fetch.Decode(resp, maxDecoded); errors.Is(err, fetch.ErrDisk) {
		return err
	}
	return nil
}

// validators are what a server is asked by next time: what the answer gives, or, where it only says that what was known
// still holds, what was known.
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
	if d.Unmodified { // whose answer need not repeat them
		etag = cmp.Or(etag, was.ETag)
		if modified.IsZero() {
			modified = was.Modified
		}
	}
	return etag, modified
}
