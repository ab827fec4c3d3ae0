// Package audit reports the problems of the sites in a crawl as tables, such as broken links, orphans and duplicates.
//
// It reads pages.jsonl once, and the metadata records of the WARC files once for all tables about links. Rows are
// sorted on disk. Memory holds the buffers for sorting, and what package links holds of URLs that failed or redirect.
package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"kumo/internal/archive/links"
	"kumo/internal/base/extsort"
	"kumo/internal/content/parse"
	"kumo/internal/state/store/jsonl"
)

// A Config configures an audit. The limits have defaults.
type Config struct {
	Finder *links.Finder
	Temp   string // an existing folder for temporary files, removed by the caller
	Limits
	// Begin is called before the rows of each table. It returns functions that write a row and end the table. nil:
	// rows are only counted.
	Begin func(*Table) (write func(cells []string) error, end func() error, err error)
}

// Limits are the thresholds beyond which an audit reports a page.
type Limits struct {
	Title, Description int           // characters
	Slow               time.Duration // from the request to the end of the response
	Large              int64         // bytes of the body as transferred
}

// Defaults are the default limits.
var Defaults = Limits{Title: 60, Description: 160, Slow: time.Second, Large: 2 << 20}

// A Summary has the number of problems in each table.
type Summary struct {
	URLs   int64          `json:"urls"`  // with a response
	Pages  int64          `json:"pages"` // HTML with status 200
	Tables []TableSummary `json:"tables"`
	Notes  []string       `json:"notes,omitempty"` // why results are incomplete
}

// A TableSummary has the number of rows of a table.
type TableSummary struct {
	Name     string           `json:"name"`
	Title    string           `json:"title"`
	Rows     int64            `json:"rows"`
	Problems map[string]int64 `json:"problems,omitempty"` // rows by kind of problem
}

// An auditor is a running audit.
type auditor struct {
	Config
	sorter  *extsort.Sorter // a part for each table
	summary Summary
	added   uint64 // numbered rows

	hasInlinks bool // the links of all pages are known
}

// ErrNoPages means that the crawl has no list of its pages.
var ErrNoPages = errors.New("the crawl has no pages.jsonl, and only that has the titles and times of pages: " +
	"crawl with --format warc,jsonl")

// Run reads the crawl and writes the tables.
func Run(ctx context.Context, cfg Config) (_ *Summary, err error) {
	cfg.Limits = cfg.withDefaults()
	a := &auditor{Config: cfg, sorter: extsort.New(extsort.Config{
		Dir: filepath.Join(cfg.Temp, "audit"), Parts: int(numTables)})}
	defer func() { err = errors.Join(err, a.sorter.Close()) }()
	for i := range Tables {
		a.summary.Tables = append(a.summary.Tables, TableSummary{Name: Tables[i].Name, Title: Tables[i].Title,
			Problems: map[string]int64{}})
	}
	if err := cfg.Finder.EachVisit(ctx, a.addVisit); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoPages
	} else if err != nil {
		return nil, err
	}
	if err := a.readLinks(ctx); err != nil {
		return nil, err
	}
	for id := range numTables {
		if err := a.table(id, func(out *rows) error { return a.fill(ctx, id, out) }); err != nil {
			return nil, fmt.Errorf("write the table %s: %w", Tables[id].Name, err)
		}
	}
	a.summary.Notes = append(a.summary.Notes, cfg.Finder.Notes()...)
	return &a.summary, nil
}

func (l Limits) withDefaults() Limits {
	return Limits{cmp.Or(l.Title, Defaults.Title), cmp.Or(l.Description, Defaults.Description),
		cmp.Or(l.Slow, Defaults.Slow), cmp.Or(l.Large, Defaults.Large)}
}

// add adds a record for a table.
func (a *auditor) add(t tableID, key, value string) error {
	return a.sorter.Add(int(t), []byte(key), []byte(value))
}

// addVisit adds the records of a page's last visit.
func (a *auditor) addVisit(p *jsonl.PageLine) error {
	a.summary.URLs++
	errs := []error{a.addTime(p), a.addSize(p), a.addPage(p)}
	if p.Status != http.StatusOK || !parse.IsHTML(cmp.Or(p.Sniffed, p.Type)) {
		return errors.Join(errs...)
	}
	a.summary.Pages++
	d := directivesOf(p.Robots)
	canonical := ""
	if p.Canonical != "" {
		canonical = a.Finder.Canonical(p.Canonical)
	}
	errs = append(errs, a.addDirectives(p, d), a.addCanonical(p, canonical, d), a.addLanguages(p))
	if !d.noIndex && (canonical == "" || canonical == p.URL) { // search engines do not show the others
		errs = append(errs, a.addText(titles, p.URL, p.Title), a.addText(descriptions, p.URL, p.Description),
			a.addContent(p))
	}
	return errors.Join(errs...)
}

// addRow adds a row that needs no other record, with the key by which it is sorted.
func (a *auditor) addRow(t tableID, key, problem string, cells ...string) error {
	return a.add(t, key, problem+"\x00"+strings.Join(cells, "\x00"))
}

// fill writes the rows of a table.
func (a *auditor) fill(ctx context.Context, t tableID, out *rows) error {
	switch t {
	case titles:
		return a.textRows(ctx, t, a.Title, out)
	case descriptions:
		return a.textRows(ctx, t, a.Description, out)
	case canonicals:
		return a.canonicalRows(ctx, out)
	case languages:
		return a.languageRows(ctx, out)
	case duplicates:
		return a.duplicateRows(ctx, out)
	case allPages:
		return a.pageRows(ctx, out)
	default:
		return a.each(ctx, t, func(_, value string) error {
			cells := strings.Split(value, "\x00")
			return out.row(cells[0], cells[1:]...)
		})
	}
}

// rows writes the rows of a table, and counts them.
type rows struct {
	summary *TableSummary
	write   func([]string) error
}

// row writes a row with one problem.
func (r *rows) row(problem string, cells ...string) error {
	r.summary.Rows++
	r.summary.Problems[problem]++
	return r.write(cells)
}

// table writes a table.
func (a *auditor) table(id tableID, fill func(*rows) error) error {
	out := &rows{summary: &a.summary.Tables[id], write: func([]string) error { return nil }}
	end := func() error { return nil }
	if a.Begin != nil {
		var err error
		if out.write, end, err = a.Begin(&Tables[id]); err != nil {
			return err
		}
	}
	return errors.Join(fill(out), end())
}

// each calls f with the records of a table in order, without repetitions.
func (a *auditor) each(ctx context.Context, t tableID, call func(key, value string) error) error {
	sorted, err := a.sorter.Sorted(int(t))
	if err != nil {
		return err
	}
	lastKey, lastValue, begun := "", "", false
	err = sorted.Each(ctx, func(key, value []byte) error {
		if begun && string(key) == lastKey && string(value) == lastValue {
			return nil
		}
		begun, lastKey, lastValue = true, string(key), string(value)
		return call(lastKey, lastValue)
	})
	return errors.Join(err, sorted.Close())
}
