// Package records sends the records of a crawl to a sink, in URL order. It writes no files.
//
// A record has the columns of package row, the main text extracted from the page, and the fields extracted by rules, as
// in fields.jsonl. The exporter reports the last URL that the sink has acknowledged, so that an interrupted export can
// resume there.
package records

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/captures"
	"kumo/internal/archive/export/row"
	"kumo/internal/archive/sink"
	"kumo/internal/base/extsort"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/content/parse"
	"kumo/internal/state/store"
	"kumo/internal/state/store/jsonl"
)

var _ export.Preparer = (*Exporter)(nil)

// A Config configures the export.
type Config struct {
	Sink  sink.Sink
	Crawl string // the crawl's folder
	Temp  string // folder for sorting fields; default the system's
	After string // URLs up to this one were sent before; "": none
	// Rules returns the field rules that apply to a URL; nil: unknown.
	Rules func(url string) []page.FieldRule
	// Acknowledged is called with the last URL up to which the sink has all records, and the number of records sent;
	// may be nil.
	Acknowledged func(url string, put int64) error
	// Preview, if set, is called with each capture that would be sent. Then no record is read or sent.
	Preview func(c *captures.Capture) error
}

// An Exporter sends records.
type Exporter struct {
	cfg    Config
	fields *fields
	batch  []sink.Record
	bytes  int
	put    int64
	last   string // last URL written
	report export.Report

	withheld int64 // pages whose content the crawl withholds
}

// New returns an exporter into a sink. The caller closes the sink.
func New(ctx context.Context, cfg Config) (*Exporter, error) {
	e := &Exporter{cfg: cfg}
	if cfg.Preview != nil {
		return e, nil
	}
	var err error
	e.fields, err = sortFields(ctx, &cfg)
	return e, err
}

// Close removes temporary files.
func (e *Exporter) Close() error {
	if e.fields == nil {
		return nil
	}
	return e.fields.close()
}

// prepared is the record of a page.
type prepared struct {
	rec        sink.Record
	unreadable error
}

// Prepare returns a function that builds records, except for URLs that were sent before.
func (e *Exporter) Prepare() export.PrepareFunc {
	reader := row.NewReader(false)
	return func(p *export.Page) (any, error) {
		if e.passed(p.URL) || isWithheld(p) {
			return nil, nil
		}
		if e.cfg.Preview != nil {
			return &prepared{}, nil
		}
		r, err := reader.Read(p)
		if err != nil {
			return nil, err
		}
		made := &prepared{rec: e.record(r), unreadable: r.Unreadable}
		if r.Status/100 != 2 {
			return made, nil
		}
		t, err := reader.Text(p)
		if err != nil {
			return nil, err
		}
		if t != nil {
			made.rec.Headline, made.rec.Author, made.rec.Published = t.Headline, t.Author, t.Published
			made.rec.Kind, made.rec.Text, made.rec.Comments = t.Kind, t.Text, t.Comments
		}
		return made, nil
	}
}

func (e *Exporter) passed(url string) bool {
	return row.IsRobotsTxt(url) || e.cfg.After != "" && url <= e.cfg.After
}

// isWithheld reports whether the crawl withholds the page's content, because its site does not allow a use.
func isWithheld(p *export.Page) bool { return p.Visit != nil && p.Visit.Withheld != "" }

func (e *Exporter) record(r *row.Row) sink.Record {
	rec := sink.Record{URL: r.URL, Status: r.Status, Time: r.Time, Type: r.Type, Charset: r.Charset, Lang: r.Lang,
		Title: r.Title, H1: r.H1, Description: r.Description, Canonical: r.Canonical, Bytes: int64(r.Bytes), Digest: r.Digest,
		Links: r.Links, Truncated: r.Truncated, Host: r.Host, Depth: r.Depth, NoIndex: r.NoIndex}
	if r.Visit != nil {
		rec.Usage = r.Usage
	}
	if r.ServerIP.IsValid() {
		rec.ServerIP = r.ServerIP.String()
	}
	if e.cfg.Rules != nil {
		rec.Rules = e.cfg.Rules(r.URL)
	}
	return rec
}

// Write adds a record, and sends a batch when it is full.
func (e *Exporter) Write(ctx context.Context, p *export.Page) error {
	if e.passed(p.URL) {
		return nil
	}
	if isWithheld(p) {
		e.withheld++
		return nil
	}
	made := p.Prepared.(*prepared)
	if made.unreadable != nil {
		e.report.Add(p, false, false, made.unreadable)
		return nil
	}
	rec := &made.rec
	e.report.Add(p, parse.IsHTML(p.Type), rec.Truncated != "", nil)
	if e.cfg.Preview != nil {
		return e.cfg.Preview(p.Capture)
	}
	var err error
	if rec.Fields, err = e.fields.fieldsOf(rec); err != nil {
		return err
	}
	rec.Fit()
	if e.bytes > 0 && e.bytes+rec.Size() > sink.BatchBytes {
		if err := e.flush(ctx); err != nil {
			return err
		}
	}
	e.batch, e.bytes, e.last = append(e.batch, *rec), e.bytes+rec.Size(), p.URL
	if len(e.batch) >= sink.BatchRecords {
		return e.flush(ctx)
	}
	return nil
}

func (e *Exporter) flush(ctx context.Context) error {
	if len(e.batch) == 0 {
		return nil
	}
	if err := e.cfg.Sink.Put(ctx, e.batch); err != nil {
		return err
	}
	e.put += int64(len(e.batch))
	e.batch, e.bytes = e.batch[:0], 0
	if e.cfg.Acknowledged == nil {
		return nil
	}
	return e.cfg.Acknowledged(e.last, e.put)
}

// Finish sends the remaining records.
func (e *Exporter) Finish(ctx context.Context, r *export.Report) error {
	r.Merge(&e.report)
	if e.withheld > 0 {
		r.Notes = append(r.Notes, "left out: "+stats.Count(e.withheld, "pages whose content the crawl withholds (--usage)"))
	}
	if e.cfg.Preview != nil {
		return nil
	}
	if err := e.flush(ctx); err != nil {
		return err
	}
	return e.cfg.Sink.Flush(ctx)
}

// fields reads the lines of fields.jsonl in URL order.
type fields struct {
	dir    string
	sorter *extsort.Sorter
	sorted *extsort.Merge
	key    string // key of value; "" at the end
	value  []byte
}

const keyTime = "20060102150405"

func sortFields(ctx context.Context, cfg *Config) (*fields, error) {
	dir, err := os.MkdirTemp(cfg.Temp, "kumo-fields-")
	if err != nil {
		return nil, err
	}
	f := &fields{dir: dir, sorter: extsort.New(extsort.Config{Disk: vfs.OS, Dir: filepath.Join(dir, "sort"),
		Memory: 16 << 20})}
	_, err = store.EachLineOf(vfs.OS, filepath.Join(cfg.Crawl, jsonl.FieldsName), func(line []byte, _ int64) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		l, err := jsonl.ParseFields(line)
		if err != nil {
			return nil // kumo verify reports it
		}
		made := sink.Fields{Rule: l.Rule}
		if made.Values, err = json.Marshal(l.Fields); err != nil {
			return err
		}
		value, err := json.Marshal(made)
		if err != nil {
			return err
		}
		return f.sorter.Add(0, []byte(l.URL+"\x00"+l.Time.UTC().Format(keyTime)), value)
	})
	if err == nil {
		f.sorted, err = f.sorter.Sorted(0)
	}
	if err == nil {
		err = f.next()
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *fields) next() error {
	key, value, err := f.sorted.Next()
	if errors.Is(err, io.EOF) {
		f.key = ""
		return nil
	}
	f.key, f.value = string(key), value
	return err
}

// fieldsOf returns the fields that rules extracted from a record's page on the same visit. Calls must be in URL order.
func (f *fields) fieldsOf(r *sink.Record) (all []sink.Fields, err error) {
	url := r.URL + "\x00"
	want := url + r.Time.UTC().Format(keyTime)
	for f.key != "" && (f.key < want || strings.HasPrefix(f.key, url)) {
		if f.key == want {
			var made sink.Fields
			if err := json.Unmarshal(f.value, &made); err != nil {
				return nil, err
			}
			all = append(all, made)
		}
		if err := f.next(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (f *fields) close() (err error) {
	if f.sorted != nil {
		err = f.sorted.Close()
	}
	return errors.Join(err, f.sorter.Close(), os.RemoveAll(f.dir))
}
