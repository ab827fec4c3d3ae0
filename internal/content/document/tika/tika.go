// Package tika reads documents by an Apache Tika server (https://tika.apache.org), by its endpoint /rmeta/html: formats
// that kumo has no reader for, such as .doc and RTF, and text in scanned pages.
package tika

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"kumo/internal/content/document"
)

// Config configures a Reader.
type Config struct {
	URL     string        // of the server: http://127.0.0.1:9998
	Timeout time.Duration // for a document; default 2 minutes
	Client  *http.Client  // default: one of its own
}

// A Reader sends documents to a server. It is safe for concurrent use.
type Reader struct {
	endpoint string
	timeout  time.Duration
	client   *http.Client
}

// New returns a Reader.
func New(cfg Config) (*Reader, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is not the URL of a Tika server, such as http://127.0.0.1:9998", cfg.URL)
	}
	r := &Reader{endpoint: u.JoinPath("rmeta", "html").String(), timeout: cmp.Or(cfg.Timeout, 2*time.Minute),
		client: cfg.Client}
	if r.client == nil {
		r.client = &http.Client{}
	}
	return r, nil
}

// metadata is what the server says of a document. Values are strings or lists of strings.
type metadata map[string]json.RawMessage

// maxAnswer limits the bytes of an answer beyond the text.
const maxAnswer = 16 << 20

// Read sends a document to the server, and returns what it has read.
func (r *Reader) Read(ctx context.Context, f document.File, lim document.Limits) (*document.Document, error) {
	inner, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	parts, err := r.request(inner, f, lim)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return nil, document.Errorf(document.Timeout, "the Tika server took longer than %v", r.timeout)
	case err != nil:
		return nil, err
	case len(parts) == 0:
		return nil, document.Errorf(document.Crashed, "the Tika server answered with an empty list")
	}
	return documentOf(parts, lim), nil
}

func (r *Reader) request(ctx context.Context, f document.File, lim document.Limits) (parts []metadata, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, r.endpoint, io.NewSectionReader(f, 0, f.Size()))
	if err != nil {
		return nil, err
	}
	req.ContentLength = f.Size()
	req.Header.Set("Accept", "application/json")
	req.Header.Set("writeLimit", strconv.Itoa(lim.Text))
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, document.Errorf(document.Crashed, "the Tika server cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusUnprocessableEntity, resp.StatusCode == http.StatusUnsupportedMediaType:
		return nil, document.Errorf(document.Unsupported, "the Tika server answers with status %d", resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return nil, document.Errorf(document.Crashed, "the Tika server answers with status %d", resp.StatusCode)
	}
	limit := int64(4*lim.Text) + maxAnswer
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, document.Errorf(document.Crashed, "the answer of the Tika server: %w", err)
	}
	if int64(len(body)) > limit {
		return nil, document.Errorf(document.TooLarge, "the answer of the Tika server is longer than %d bytes", limit)
	}
	if err := json.Unmarshal(body, &parts); err != nil {
		return nil, document.Errorf(document.Crashed, "the answer of the Tika server: %w", err)
	}
	return parts, nil
}

// text returns a value; several are joined by ", ".
func (m metadata) text(names ...string) string {
	for _, name := range names {
		var one string
		if json.Unmarshal(m[name], &one) == nil && one != "" {
			return one
		}
		var all []string
		if json.Unmarshal(m[name], &all) == nil && len(all) > 0 {
			return strings.Join(all, ", ")
		}
	}
	return ""
}

// documentOf converts an answer: a document, and the files in it.
func documentOf(parts []metadata, lim document.Limits) *document.Document {
	m := parts[0]
	d := &document.Document{Format: formatOf(m.text("Content-Type")), Title: m.text("dc:title"),
		Author: m.text("dc:creator"), Published: m.text("dcterms:created"), Modified: m.text("dcterms:modified"),
		Lang: m.text("dc:language", "language"), Description: m.text("dc:description"), Rights: m.text("dc:rights")}
	d.Pages, _ = strconv.Atoi(m.text("xmpTPg:NPages", "meta:page-count", "meta:slide-count"))
	for _, part := range parts[1:] {
		if name := part.text("resourceName"); name != "" {
			d.Attachments = append(d.Attachments, name)
		}
	}
	b := &blocks{doc: d, limits: lim}
	b.read([]byte(m.text("X-TIKA:content")))
	switch trouble := m.text("X-TIKA:EXCEPTION:container_exception", "X-TIKA:EXCEPTION:runtime"); {
	case strings.Contains(trouble, "Encrypted"):
		d.Problem, d.Detail = document.Encrypted, "a password is needed"
	case m.text("X-TIKA:EXCEPTION:write_limit_reached") == "true":
		d.Problem, d.Detail = document.TooLarge, fmt.Sprintf("the text is longer than %d bytes", lim.Text)
	case trouble != "":
		first, _, _ := strings.Cut(trouble, "\n")
		d.Problem, d.Detail = document.Broken, "Tika: "+first
	case d.Problem == "" && len(d.Blocks) == 0 && d.Pages > 0:
		d.Problem, d.Detail = document.NoText, "Tika has found no text"
	}
	return d
}

// formatOf returns a short name of a media type.
func formatOf(mediaType string) document.Format {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	switch mediaType = strings.TrimSpace(mediaType); mediaType {
	case "application/msword":
		return "doc"
	case "application/vnd.ms-excel":
		return "xls"
	case "application/vnd.ms-powerpoint":
		return "ppt"
	case "application/rtf", "text/rtf":
		return document.RTF
	}
	_, sub, _ := strings.Cut(mediaType, "/")
	if names := map[string]document.Format{
		"vnd.openxmlformats-officedocument.wordprocessingml.document":   document.DOCX,
		"vnd.openxmlformats-officedocument.presentationml.presentation": document.PPTX,
		"vnd.openxmlformats-officedocument.spreadsheetml.sheet":         document.XLSX,
		"vnd.oasis.opendocument.text":                                   document.ODT,
		"vnd.oasis.opendocument.spreadsheet":                            document.ODS,
		"vnd.oasis.opendocument.presentation":                           document.ODP,
		"epub+zip":                                                      document.EPUB,
	}; names[sub] != "" {
		return names[sub]
	}
	return document.Format(sub)
}

// blocks collects the blocks of an HTML page.
type blocks struct {
	doc    *document.Document
	limits document.Limits
	size   int
	page   int
}

func (b *blocks) read(page []byte) {
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil { // a bytes.Reader has no errors
		return
	}
	b.walk(root)
}

// walk adds the blocks below a node.
func (b *blocks) walk(n *html.Node) {
	for c := range n.ChildNodes() {
		switch c.DataAtom {
		case atom.Head, atom.Script, atom.Style:
		case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
			b.add(document.Block{Kind: document.Heading, Level: int(c.Data[1] - '0')}, c)
		case atom.P, atom.Pre:
			b.add(document.Block{}, c)
		case atom.Li:
			b.add(document.Block{Kind: document.Item}, c)
		case atom.Tr:
			b.addRow(c)
		case atom.Div:
			if isPage(c) {
				b.page++
			}
			b.walk(c)
		default:
			b.walk(c)
		}
	}
}

// isPage reports whether an element is a page of a PDF or a slide.
func isPage(n *html.Node) bool {
	for _, a := range n.Attr {
		if a.Key == "class" && (a.Val == "page" || a.Val == "slide-content") {
			return true
		}
	}
	return false
}

func (b *blocks) add(x document.Block, n *html.Node) {
	x.Text, x.Links = textOf(n)
	if x.Text != "" {
		b.append(x, len(x.Text))
	}
}

func (b *blocks) addRow(tr *html.Node) {
	x, size := document.Block{Kind: document.Row}, 0
	for c := range tr.ChildNodes() {
		if c.DataAtom == atom.Td || c.DataAtom == atom.Th {
			text, links := textOf(c)
			x.Cells, x.Links, size = append(x.Cells, text), append(x.Links, links...), size+len(text)
		}
	}
	if size > 0 {
		b.append(x, size)
	}
}

func (b *blocks) append(x document.Block, size int) {
	if b.size += size; b.size > b.limits.Text || len(b.doc.Blocks) >= b.limits.Blocks {
		b.doc.Problem, b.doc.Detail = document.TooLarge, "there is more text than is kept"
		return
	}
	x.Page = b.page
	b.doc.Blocks = append(b.doc.Blocks, x)
}

// textOf returns the text of an element with white space collapsed, and its links.
func textOf(n *html.Node) (string, []document.Link) {
	var text strings.Builder
	var links []document.Link
	for d := range n.Descendants() {
		switch {
		case d.Type == html.TextNode:
			text.WriteString(d.Data)
		case d.DataAtom == atom.Br, d.DataAtom == atom.P, d.DataAtom == atom.Li:
			text.WriteByte(' ')
		case d.DataAtom == atom.A:
			for _, a := range d.Attr {
				if a.Key == "href" && a.Val != "" {
					label, _ := textOf(d)
					links = append(links, document.Link{URL: a.Val, Text: label})
				}
			}
		}
	}
	return strings.Join(strings.Fields(text.String()), " "), links
}
