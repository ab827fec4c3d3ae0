package document

import (
	"net/http"
	"strings"

	"kumo/internal/base/page"
	"kumo/internal/content/lang"
)

// MayBe reports whether bodies of a declared media type may be documents with text.
func MayBe(mediaType string) bool {
	switch mediaType {
	case "application/pdf", "application/x-pdf", "application/epub+zip", "application/zip",
		"application/octet-stream", "binary/octet-stream", "application/force-download", "application/x-download":
		return true
	}
	return strings.HasPrefix(mediaType, "application/vnd.openxmlformats-officedocument.") ||
		strings.HasPrefix(mediaType, "application/vnd.oasis.opendocument.") ||
		strings.HasPrefix(mediaType, "application/vnd.ms-")
}

// Failed returns a document of which nothing could be read.
func Failed(f Format, err error) *Document {
	d := &Document{Format: f}
	d.Problem, d.Detail = ProblemOf(err)
	return d
}

// Limits of metadata in a page's record.
const (
	maxValue = 1 << 10 // bytes of a text
	maxNames = 100     // attachments, and properties
)

// Info returns the metadata for a page's record. Long texts and lists are cut.
func (d *Document) Info() *page.Document {
	info := &page.Document{Type: string(d.Format), Pages: d.Pages, Author: short(d.Author), Published: short(d.Published),
		Modified: short(d.Modified), Rights: short(d.Rights), WhyNot: string(d.Problem), Detail: short(d.Detail)}
	for _, name := range d.Attachments[:min(len(d.Attachments), maxNames)] {
		info.Attachments = append(info.Attachments, short(name))
	}
	if len(d.Properties) > 0 {
		info.Properties = map[string]string{}
		for _, p := range d.Properties[:min(len(d.Properties), maxNames)] {
			info.Properties[short(p.Name)] = short(p.Value)
		}
	}
	return info
}

// short returns the beginning of a text as valid UTF-8.
func short(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxValue)], "") }

// Shown returns a response with the document's HTML form and main text, to be parsed like resp.
func (d *Document) Shown(resp *page.Response) *page.Response {
	shown := resp.Rendered(d.HTML())
	shown.Main = d.mainText()
	return shown
}

// mainText returns the document's text in the form of a page's main text. Its language is the detected one; if
// detection fails, the declared one.
func (d *Document) mainText() *page.MainText {
	text := d.Plain()
	t := &page.MainText{Title: d.Title, Author: d.Author, Published: d.Published, Text: text,
		Lang: lang.Of(text, d.Lang), Kind: "document"}
	for i := range d.Blocks {
		if b := &d.Blocks[i]; b.Kind == Heading && b.Level <= 1 && b.Text != "" {
			t.Headline = b.Text
			break
		}
	}
	if t.Headline == "" {
		t.Headline = t.Title
	}
	return t
}

// A Mode selects the parts of documents that a crawl reads.
type Mode string

// The modes.
const (
	Auto  Mode = ""      // Text if the crawl writes main texts, otherwise Off
	Off   Mode = "off"   // nothing
	Links Mode = "links" // their links and metadata
	Text  Mode = "text"  // also their text
)

// Modes are the modes that a user can name.
var Modes = []string{string(Off), string(Links), string(Text)}

// FormatOf returns the format of a response that a reader may understand; "" for any other, such as HTML. The media
// type is the one that was detected, which is the declared one if the body was not decoded.
func FormatOf(resp *page.Response, sniffed string) Format {
	if resp.Status != http.StatusOK || sniffed == "text/html" || sniffed == "application/xhtml+xml" ||
		resp.PayloadLen() == 0 {
		return ""
	}
	body := resp.Payload
	switch {
	case resp.Header.Get("Content-Encoding") != "":
		body = resp.Body
	case resp.Spooled != nil:
		var head [1 << 10]byte
		n, _ := resp.Spooled.Payload.ReadAt(head[:], 0) // a format needs only a few bytes
		body = head[:n]
	}
	return Detect(body[:min(len(body), 1<<10)])
}
