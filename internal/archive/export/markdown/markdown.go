// Package markdown exports the main text of each HTML page as a Markdown file, for reading or for training models. The
// file names are HOST/PATH.md (package names).
//
// A file starts with YAML front matter between lines of ---: url, title, date (of publication), language, author, kind and
// fetched. Fields that the page does not provide are omitted. The headline and the main text follow. Menus,
// advertisements and footers are omitted, as are pages without a main text.
package markdown

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/names"
	"kumo/internal/archive/export/row"
	"kumo/internal/archive/export/target"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/content/document"
	"kumo/internal/content/maintext"
	"kumo/internal/content/parse"
)

var (
	_ export.Preparer = (*Exporter)(nil)
	_ export.Planner  = (*Exporter)(nil)
)

// An Exporter writes the files.
type Exporter struct {
	to       *target.Folder
	temp     string
	names    *names.Table
	textless int64
	withheld int64 // pages whose content the crawl withholds
	report   export.Report
}

// New returns an exporter into a folder; temp is the folder for temporary files of sorting.
func New(to *target.Folder, temp string) (*Exporter, error) {
	dir, err := os.MkdirTemp(temp, "kumo-markdown-")
	if err != nil {
		return nil, err
	}
	return &Exporter{to: to, temp: dir, names: names.NewTable(filepath.Join(dir, "sort"))}, nil
}

// Close removes the temporary files.
func (e *Exporter) Close() error { return errors.Join(e.names.Close(), os.RemoveAll(e.temp)) }

// nameOf returns the requested name of a page's file; "" if the page has no file.
func nameOf(p *export.Page) string {
	u, err := weburl.Parse(p.URL)
	if err != nil || !u.IsHTTP() || p.Status/100 != 2 || p.Type != "" && !parse.IsHTML(p.Type) && !document.MayBe(p.Type) {
		return ""
	}
	return names.Of(u, "") + ".md"
}

// Plan records the requested name of a page.
func (e *Exporter) Plan(_ context.Context, p *export.Page) error {
	if name := nameOf(p); name != "" {
		return e.names.Add(name, p.URL)
	}
	return nil
}

// FinishPlan assigns the names.
func (e *Exporter) FinishPlan(ctx context.Context) error {
	return e.to.DeclareFiles(ctx, func(add func(string) error) error { return e.names.Assign(ctx, add) })
}

// prepared is a page, with its file if it has a main text.
type prepared struct {
	*row.Row
	file []byte
}

// Prepare returns a function that renders files.
func (e *Exporter) Prepare() export.PrepareFunc {
	reader := row.NewReader(false)
	return func(p *export.Page) (any, error) {
		if nameOf(p) == "" {
			return prepared{}, nil
		}
		r, err := reader.Read(p)
		if err != nil || !reader.HTML() || p.Visit != nil && p.Visit.Withheld != "" {
			return prepared{Row: r}, err
		}
		if reader.Answer.Document != nil {
			return prepared{r, renderDocument(r, reader.Answer.Shown)}, nil
		}
		t, err := maintext.ExtractMarkdown(reader.UTF8(), p.URL, reader.Page.Charset)
		if err != nil && !errors.Is(err, maintext.ErrTooLarge) || t.Text == "" {
			return prepared{Row: r}, nil //nolint:nilerr // there is nothing to read in it
		}
		return prepared{r, renderFile(r, &t)}, nil
	}
}

// renderFile returns the content of a page's file.
func renderFile(r *row.Row, t *maintext.Text) []byte {
	return renderPage(r, t, cmp.Or(t.Headline, r.H1, r.Title))
}

// renderPage returns the content of a file: the metadata, a headline, and the text in Markdown.
func renderPage(r *row.Row, t *maintext.Text, headline string) []byte {
	var b strings.Builder
	b.WriteString("---\n")
	for _, f := range [][2]string{
		{"url", r.URL}, {"title", cmp.Or(r.Title, t.Title)}, {"date", t.Published}, {"language", t.Language()},
		{"author", t.Author}, {"kind", t.Kind}, {"fetched", r.Time.Format(time.RFC3339)},
	} {
		if f[1] != "" {
			b.WriteString(f[0] + ": " + quoted(f[1]) + "\n")
		}
	}
	writeUsage(&b, r)
	b.WriteString("---\n\n")
	if headline != "" {
		b.WriteString("# " + maintext.EscapeMarkdown(headline) + "\n\n")
	}
	b.WriteString(t.Text + "\n")
	return []byte(strings.ToValidUTF8(b.String(), "\uFFFD"))
}

// renderDocument returns the content of a document's file; nil without text.
func renderDocument(r *row.Row, shown *page.Response) []byte {
	main := shown.Main
	if main.Text == "" {
		return nil
	}
	t := maintext.Text{Title: main.Title, Author: main.Author, Published: main.Published, Kind: main.Kind,
		Lang: main.Lang, Text: maintext.Markdown(shown.Body, r.URL)}
	headline := main.Title
	if strings.HasPrefix(t.Text, "#") { // it has one
		headline = ""
	}
	return renderPage(r, &t, headline)
}

// writeUsage writes the usage preferences of a page.
func writeUsage(b *strings.Builder, r *row.Row) {
	if r.Visit == nil || r.Usage == nil {
		return
	}
	u := r.Usage
	b.WriteString("usage:\n")
	for _, f := range [][2]string{
		{"train_ai", u.TrainAI}, {"search", u.Search}, {"ai_input", u.AIInput}, {"tdm", u.TDM}, {"policy", u.Policy},
		{"license", u.License}, {"source", u.Source}, {"raw", u.Raw},
	} {
		if f[1] != "" {
			b.WriteString("  " + f[0] + ": " + quoted(f[1]) + "\n")
		}
	}
}

// quoted returns a YAML double-quoted string.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == ' ' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 1<<16:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Write writes the file of a page.
func (e *Exporter) Write(_ context.Context, p *export.Page) error {
	made := p.Prepared.(prepared)
	if made.Row == nil {
		return nil
	}
	name := e.names.Name(nameOf(p), p.URL)
	if made.file == nil {
		if made.Unreadable != nil {
			e.report.Add(p, false, false, made.Unreadable)
		} else {
			e.countTextless(p)
		}
		return e.to.Remove(name)
	}
	e.report.Add(p, true, made.Truncated != "", nil)
	return e.to.Put(name, made.file)
}

func (e *Exporter) countTextless(p *export.Page) {
	if p.Visit != nil && p.Visit.Withheld != "" {
		e.withheld++
	} else {
		e.textless++
	}
}

// Finish reports the pages without a file.
func (e *Exporter) Finish(_ context.Context, r *export.Report) error {
	r.Merge(&e.report)
	if e.withheld > 0 {
		r.Notes = append(r.Notes, "left out: "+stats.Count(e.withheld, "pages whose content the crawl withholds (--usage)"))
	}
	if e.textless > 0 {
		r.Notes = append(r.Notes, "left out: "+stats.Count(e.textless, "pages without a main text"))
	}
	return nil
}
