package text

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"kumo/internal/archive/export/table"
	"kumo/internal/archive/links"
)

// LinkFormat selects how links are printed.
type LinkFormat int

// Formats of links.
const (
	LinksByURL LinkFormat = iota // each URL once, above the pages that link to it
	LinkLines                    // a line per link
	LinksCSV
	LinksJSON
)

// NewLinkPrinter returns a printer of links.
func NewLinkPrinter(w io.Writer, as LinkFormat) LinkPrinter {
	switch as {
	case LinksJSON:
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return jsonLinks{enc}
	case LinksCSV:
		return &csvLinks{w: csv.NewWriter(w)}
	case LinkLines:
		return listedLinks{w}
	}
	return &groupedLinks{w: w}
}

// A LinkPrinter prints links.
type LinkPrinter interface {
	Print(*links.Link) error
	End() error
}

type jsonLinks struct{ *json.Encoder }

func (p jsonLinks) Print(l *links.Link) error { return p.Encode(l) }
func (p jsonLinks) End() error                { return nil }

type csvLinks struct {
	w     *csv.Writer
	begun bool
}

func (p *csvLinks) Print(l *links.Link) error {
	p.head()
	return p.w.Write([]string{table.Cell(l.URL), strconv.Itoa(l.Status), l.Error,
		table.Cell(strings.Join(l.Redirects, " ")), table.Cell(l.From), l.Kind, table.Cell(l.Text)})
}

func (p *csvLinks) head() {
	if !p.begun {
		p.begun = true
		_ = p.w.Write([]string{"url", "status", "error", "redirects", "from", "kind", "text"}) // Error tells
	}
}

func (p *csvLinks) End() error {
	p.head()
	p.w.Flush()
	return p.w.Error()
}

// groupedLinks shows each URL once, above the pages that link to it.
type groupedLinks struct {
	w    io.Writer
	last string
}

func (p *groupedLinks) Print(l *links.Link) error {
	if l.URL != p.last {
		if p.last != "" {
			fmt.Fprintln(p.w)
		}
		fmt.Fprintf(p.w, "%-7s %s\n", linkWord(l), l.URL)
		for _, to := range l.Redirects {
			fmt.Fprintf(p.w, "     -> %s\n", to)
		}
	}
	p.last = l.URL
	_, err := fmt.Fprintf(p.w, "   from %s%s\n", l.From, linkText(l))
	return err
}

func (p *groupedLinks) End() error { return nil }

// listedLinks shows a link a line.
type listedLinks struct{ w io.Writer }

func (p listedLinks) Print(l *links.Link) error {
	_, err := fmt.Fprintf(p.w, "%-11s %s%s\n", linkWord(l), strings.Join(append([]string{l.URL}, l.Redirects...), " -> "),
		linkText(l))
	return err
}

func (p listedLinks) End() error { return nil }

// linkWord returns the outcome of a link in a word.
func linkWord(l *links.Link) string {
	switch {
	case l.Error != "":
		return l.Error
	case l.Status > 0:
		return strconv.Itoa(l.Status)
	}
	return "ok"
}

func linkText(l *links.Link) string {
	switch {
	case l.Text != "":
		return fmt.Sprintf("  %q", l.Text)
	case l.Kind != "a":
		return "  (" + l.Kind + ")"
	}
	return ""
}
