// Package table exports a row for each URL as JSON Lines (pages.jsonl) or CSV for spreadsheets (pages.csv).
//
// The columns are those of package row. Values that do not apply are omitted in JSON and empty in CSV. In CSV, text
// that a spreadsheet would evaluate as a formula is prefixed with a '.
//
// A robots.txt file at a host's root that was fetched for its rules has no row.
package table

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/row"
	"kumo/internal/archive/export/target"
	"kumo/internal/content/parse"
)

// A Format is an encoding of rows.
type Format string

// The formats.
const (
	JSONL Format = "jsonl"
	CSV   Format = "csv"
)

func columns() (names []string) {
	for _, c := range row.Columns() {
		names = append(names, c.Name)
	}
	return names
}

func cells(r *row.Row) []string {
	all := row.Columns()
	cells := make([]string, len(all))
	for i := range all {
		value, known := all[i].Value(r)
		if !known {
			continue
		}
		switch v := value.(type) {
		case string:
			cells[i] = Cell(v)
		case int64:
			cells[i] = strconv.FormatInt(v, 10)
		case bool:
			cells[i] = strconv.FormatBool(v)
		case time.Time:
			cells[i] = v.Format(time.RFC3339)
		case []row.Variant:
			cells[i] = Cell(languages(v))
		}
	}
	return cells
}

// languages formats a page's languages and URLs as one cell: "de http://a/de fr http://a/fr". Neither contains spaces.
func languages(all []row.Variant) string {
	var words []string
	for _, v := range all {
		words = append(words, strings.Join(strings.Fields(v.Lang), ""), v.URL)
	}
	return strings.Join(words, " ")
}

// Cell returns a text as a CSV cell that no spreadsheet evaluates as a formula. Some spreadsheets also recognize
// full-width signs, and signs after spaces.
func Cell(cell string) string {
	begin := strings.TrimLeftFunc(cell, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	first, _ := utf8.DecodeRuneInString(begin)
	if begin != "" && strings.ContainsRune("=+-@＝＋－＠", first) {
		return "'" + cell
	}
	return cell
}

var _ export.Preparer = (*Exporter)(nil)

// An Exporter writes a table.
type Exporter struct {
	name   string
	out    *target.File
	row    func(*row.Row) error
	flush  func() error
	report export.Report
}

// New returns an exporter into a folder.
func New(ctx context.Context, to *target.Folder, form Format) (*Exporter, error) {
	e := &Exporter{name: "pages." + string(form)}
	if err := to.DeclareFiles(ctx, func(add func(string) error) error { return add(e.name) }); err != nil {
		return nil, err
	}
	var err error
	if e.out, err = to.Create(e.name); err != nil {
		return nil, err
	}
	if form == CSV {
		w := csv.NewWriter(e.out)
		e.row = func(r *row.Row) error { return w.Write(cells(r)) }
		e.flush = func() error { w.Flush(); return w.Error() }
		return e, w.Write(columns())
	}
	enc := json.NewEncoder(e.out)
	enc.SetEscapeHTML(false)
	e.row = func(r *row.Row) error { return enc.Encode(r) }
	e.flush = func() error { return nil }
	return e, nil
}

// Close discards an unfinished file.
func (e *Exporter) Close() error { return e.out.Abort() }

// Prepare returns a function that builds rows.
func (e *Exporter) Prepare() export.PrepareFunc {
	reader := row.NewReader(false)
	return func(p *export.Page) (any, error) { return reader.Read(p) }
}

// Write writes the row of a URL. If the record cannot be read, the row has the columns that are known without it.
func (e *Exporter) Write(_ context.Context, p *export.Page) error {
	if row.IsRobotsTxt(p.URL) {
		return nil
	}
	r := p.Prepared.(*row.Row)
	e.report.Add(p, parse.IsHTML(p.Type), r.Truncated != "", r.Unreadable)
	return e.row(r)
}

// Finish makes the file appear under its name.
func (e *Exporter) Finish(_ context.Context, r *export.Report) error {
	if err := e.flush(); err != nil {
		return err
	}
	r.Merge(&e.report)
	r.Open = e.name
	return e.out.Commit()
}
