package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/base/field"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/batch/collection"
	"kumo/internal/content/fields"
	"kumo/internal/content/parse"
)

// FieldsFolder contains the records that a collection's rules extracted from a day's pages, one per line, and the day's
// [FieldsReport]. tallyFolder contains the fields found and missed on each page that matches a rule.
const (
	FieldsFolder     = "fields"
	FieldsReportName = "report.json"

	tallyFolder = "tally"
)

// maxFieldsBody limits how much of a page's body the rules read, in bytes.
const maxFieldsBody = 8 << 20

// A fieldExtractor extracts records from pages by the rules of a collection.
type fieldExtractor struct {
	rules   *fields.Rules
	readers sync.Pool // of *fields.Reader
	pages   sync.Pool // of *parsing
}

// newFieldExtractor parses the rules of a collection; nil if it has none.
func newFieldExtractor(c *collection.Collection, agent string) (*fieldExtractor, error) {
	if len(c.FieldRules) == 0 {
		return nil, nil
	}
	rules, err := fields.Parse(c.Fields, c.FieldRules)
	if err != nil {
		return nil, fmt.Errorf("fields: %w", err)
	}
	f := &fieldExtractor{rules: rules}
	f.readers.New = func() any { return rules.NewReader() }
	f.pages.New = func() any { return &parseState{parser: parse.New(parse.Config{Agent: agent})} }
	return f, nil
}

// CheckFields reports problems in the rules of a collection.
func CheckFields(c *collection.Collection) error {
	_, err := newFieldExtractor(c, "")
	return err
}

// fields emits the records of a page, and the fields that its rules found and missed. For pages that match no rule, it
// only compares their URL with the rules.
func (m *member) fields(t *Task, d *Document, emit Emit) error {
	if m.extractor == nil || !d.MetaIndex || d.NoArchive || !fields.Readable(d.Type) || !m.extractor.rules.Matches(d.URL) {
		return nil
	}
	res, err := m.extractor.read(d)
	if err != nil {
		m.count(t, "fields: unreadable", 1)
		return nil //nolint:nilerr // as of its links: what cannot be read has none
	}
	m.count(t, "fields: pages", 1)
	m.count(t, "fields: records", int64(len(res.Records)))
	b := []byte{}
	for _, r := range res.Records {
		b = append(b[:0], byte(KindFields))
		b = field.JSON(append(b, `{"url":`...), d.URL)
		b = field.JSON(append(b, `,"rule":`...), r.Rule)
		b = field.JSON(append(b, `,"time":`...), d.Time.UTC().Format(time.RFC3339))
		b = append(append(append(b, `,"fields":`...), r.Values...), "}\n"...)
		if err := emit(d.Key(), b); err != nil {
			return err
		}
	}
	line, err := json.Marshal(talliedPage(d.URL, res))
	if err != nil {
		return err
	}
	return emit(d.Key(), append(append([]byte{byte(KindTally)}, line...), '\n'))
}

func (f *fieldExtractor) read(d *Document) (*fields.Result, error) {
	work := f.pages.Get().(*parseState)
	defer f.pages.Put(work)
	if err := d.DecodedResponse(&work.resp); err != nil {
		return nil, err
	}
	if err := work.parser.Parse(&work.resp, &work.page); err != nil && !parse.IsList(work.page.Sniffed) {
		return nil, err
	}
	body := work.resp.Body[:min(len(work.resp.Body), maxFieldsBody)]
	p, _ := fields.PageOf(d.URL, body, work.resp.Header.Get("Content-Type"), &work.page)
	r := f.readers.Get().(*fields.Reader)
	defer f.readers.Put(r)
	res := r.Read(p, false)
	return &res, nil
}

// A tally lists the fields that rules found and missed on a page.
type tally struct {
	URL   string      `json:"url"`
	Host  string      `json:"host"`
	Rules []tallyRule `json:"rules"`
}

type tallyRule struct {
	Rule    string   `json:"rule"`
	Records int      `json:"records"`
	Lacking int      `json:"lacking,omitempty"`
	Found   []string `json:"found,omitempty"`
	Missed  []string `json:"missed,omitempty"`
}

func talliedPage(url string, res *fields.Result) tally {
	t := tally{URL: url}
	if u, err := weburl.Parse(url); err == nil {
		t.Host = u.Origin()
	}
	for i := range res.Rules {
		r := &res.Rules[i]
		one := tallyRule{Rule: r.Rule, Records: r.Records, Lacking: r.Lacking}
		for _, f := range r.Fields {
			switch {
			case f.Found > 0:
				one.Found = append(one.Found, f.Path)
			case f.Missed > 0:
				one.Missed = append(one.Missed, f.Path)
			}
		}
		t.Rules = append(t.Rules, one)
	}
	return t
}

// result returns the page in the form that [fields.Tally] counts.
func (t *tally) result() *fields.Result {
	res := &fields.Result{}
	for _, r := range t.Rules {
		one := fields.RuleResult{Rule: r.Rule, Records: r.Records, Lacking: r.Lacking}
		for _, path := range r.Found {
			one.Fields = append(one.Fields, fields.FieldResult{Path: path, Found: 1})
		}
		for _, path := range r.Missed {
			one.Fields = append(one.Fields, fields.FieldResult{Path: path, Missed: 1})
		}
		res.Rules = append(res.Rules, one)
	}
	return res
}

// A FieldsReport are the results of a collection's rules on a day, by rule and host.
type FieldsReport struct {
	Collection string              `json:"collection"`
	Date       string              `json:"date"`
	Day        []stats.FieldCounts `json:"day"`
	SoFar      []stats.FieldCounts `json:"so_far"` // includes earlier days, to detect fields that disappeared
}

// ReadFieldsReport reads a day's report; nil if it has none.
func ReadFieldsReport(ctx context.Context, p place.Place, c *collection.Collection, date string) (*FieldsReport,
	error) {
	r := &FieldsReport{}
	err := ReadJSON(ctx, p, path.Join(DayFolder(c, FieldsFolder, date), FieldsReportName), r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return r, err
}

// writeFields writes the report of a day's extracted fields. It can be repeated.
func (p *Pipeline) writeFields(ctx context.Context, pt *collectionDay) error {
	if len(pt.FieldRules) == 0 {
		return nil
	}
	r := FieldsReport{Collection: pt.Code, Date: p.Date}
	day, all := fields.NewTally(), fields.NewTally()
	days, err := Days(ctx, p.Place, pt.Collection, FieldsFolder)
	if err != nil {
		return err
	}
	for _, d := range slices.Backward(days) {
		if d >= p.Date {
			continue
		}
		before, err := ReadFieldsReport(ctx, p.Place, pt.Collection, d)
		if err != nil {
			return err
		}
		if before != nil {
			all.Restore(before.SoFar)
			break
		}
	}
	names, err := DayFiles(ctx, p.Place, pt.Collection, tallyFolder, p.Date)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := EachLine(ctx, p.Place, name, func(line []byte) error {
			var t tally
			err := parseLine(line, &t)
			if err == nil {
				res := t.result()
				day.Add(t.Host, res)
				all.Add(t.Host, res)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	r.Day, r.SoFar = day.Counts(), all.Counts()
	return writeJSON(ctx, p.Place, path.Join(DayFolder(pt.Collection, FieldsFolder, p.Date), FieldsReportName), &r)
}
