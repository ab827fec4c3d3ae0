package check

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"time"

	"kumo/internal/content/document"
)

// documentTimeout is how long reading a document may take.
const documentTimeout = time.Minute

// DocumentIn is a file.
type DocumentIn struct {
	Body []byte `json:"body_b64" need:"body_b64"`
}

// DocumentOut is the content of a document. A field is "" if the document lacks it.
type DocumentOut struct {
	Format      string              `json:"format"`
	Title       string              `json:"title"`
	Author      string              `json:"author"`
	Published   string              `json:"published"` // a date, or RFC 3339
	Modified    string              `json:"modified"`
	Lang        string              `json:"lang"` // as declared
	Description string              `json:"description,omitempty"`
	Rights      string              `json:"rights,omitempty"`
	Pages       int                 `json:"pages"` // pages, slides, sheets or chapters
	Problem     string              `json:"problem,omitempty"`
	Detail      string              `json:"detail,omitempty"` // of the problem
	Attachments []string            `json:"attachments,omitempty"`
	Properties  []document.Property `json:"properties,omitempty"`
	Links       []DocumentLink      `json:"links"`
	Text        string              `json:"text"` // one line per paragraph; cells are separated by tabs
}

// A DocumentLink is a link of a document, as written.
type DocumentLink struct {
	URL  string `json:"url"`
	Text string `json:"text"`
}

// Document returns a function that reads a document. A document that cannot be read is a result with the problem; a
// file without a reader for its format is an error.
func Document(r document.Reader) func(DocumentIn) (DocumentOut, error) {
	return func(in DocumentIn) (DocumentOut, error) {
		ctx, cancel := context.WithTimeout(context.Background(), documentTimeout)
		defer cancel()
		d, err := r.Read(ctx, bytes.NewReader(in.Body), document.Default())
		if err != nil {
			p, detail := document.ProblemOf(err)
			if p == document.Unsupported {
				return DocumentOut{}, err
			}
			d = &document.Document{Format: document.Detect(in.Body), Problem: p, Detail: detail}
		}
		out := DocumentOut{Format: string(d.Format), Title: d.Title, Author: d.Author, Published: d.Published,
			Modified: d.Modified, Lang: d.Lang, Description: d.Description, Rights: d.Rights, Pages: d.Pages,
			Problem: string(d.Problem), Detail: d.Detail, Attachments: d.Attachments, Properties: d.Properties,
			Links: []DocumentLink{}, Text: d.Plain()}
		for i := range d.Blocks {
			for _, l := range d.Blocks[i].Links {
				out.Links = append(out.Links, DocumentLink{URL: l.URL, Text: l.Text})
			}
		}
		for _, l := range d.Links {
			out.Links = append(out.Links, DocumentLink{URL: l})
		}
		return out, nil
	}
}

func (out DocumentOut) show(s *printer) {
	s.pairs("format", out.Format, "title", out.Title, "author", out.Author, "published", out.Published,
		"modified", out.Modified, "lang", out.Lang)
	if out.Description != "" {
		s.field("description", out.Description)
	}
	if out.Rights != "" {
		s.field("rights", out.Rights)
	}
	if out.Pages > 0 {
		s.field("pages", strconv.Itoa(out.Pages))
	}
	if out.Problem != "" {
		s.field("problem", out.Problem+": "+out.Detail)
	}
	for _, p := range out.Properties {
		s.field(p.Name, p.Value)
	}
	if len(out.Attachments) > 0 {
		s.field("attachments", out.Attachments...)
	}
	s.endBlock()
	if len(out.Links) > 0 {
		s.row("url", "text")
	}
	for _, l := range out.Links {
		s.row(l.URL, l.Text)
	}
	s.endBlock()
	for line := range strings.Lines(out.Text) {
		s.row(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "  "))
	}
}
