package main

import (
	"bytes"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"testing"

	"kumo/internal/archive/place"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
	"kumo/internal/state/store/xml"
)

// outcome returns the whole output of day n in a storage location, one line per record, sorted. Each record is decoded
// and encoded again, and must be the same bytes. Then everything that depends on time is removed, and nothing else:
//
//	in, wait  nothing
//	doc       time and duration; the time of the visit whose body an unchanged page has
//	out       time
//	known     first, last and next time; the time of the visit that has the body
//	xml       <fetched>
//	index     "fetched", "part", "offset", if the record is found there
//	fields    "time"
//	robots    time and duration; the round of the file
//	state     time, duration, number of files; totals over all collections
//
// Counts, sites, the schema and the reports of field rules are compared as they are. The part of a folder that a record
// is in depends on the runner.
func (l *batchLab) outcome(p *batchPlace, n int) (lines []string) {
	l.Helper()
	o := &outcomeReader{batchLab: l, place: p, date: l.date(n)}
	for _, c := range l.collections {
		for _, folder := range []string{"in", "wait", "doc", "out", "known"} {
			o.records(batch.DayFolder(c, folder, o.date))
		}
		for _, folder := range []string{"xml", "other"} {
			o.xml(batch.DayFolder(c, folder, o.date))
		}
		for _, folder := range []string{batch.FieldsFolder, "tally"} {
			o.jsonLines(batch.DayFolder(c, folder, o.date))
		}
		o.state(c, n)
	}
	o.records(batch.RobotsFolder + "/" + o.date)
	slices.Sort(o.lines)
	return o.lines
}

type outcomeReader struct {
	*batchLab
	place *batchPlace
	date  string
	lines []string
}

// note adds a record; what describes it for messages about differences.
func (o *outcomeReader) note(folder, key string, masked []byte, what string) {
	o.lines = append(o.lines, fmt.Sprintf("%s %s %x %s", folder, key, sha1.Sum(masked), what))
}

// records reads SequenceFiles.
func (o *outcomeReader) records(folder string) {
	o.Helper()
	names, err := batch.ListFiles(o.Context(), o.place.at, folder)
	if err != nil {
		o.Fatal(err)
	}
	for _, name := range names {
		in := path.Dir(name)
		if strings.HasPrefix(in, batch.RobotsFolder) {
			in = folder
		}
		for r, err := range batch.ReadFile(o.Context(), o.place.at, name) {
			if err != nil {
				o.Fatal(name, err)
			}
			masked, again, what, err := mask(r.Key, r.Value)
			if err != nil {
				o.Fatal(name, err)
			}
			if !bytes.Equal(again, r.Value) {
				o.Errorf("%s: %s is not the same when it is written again", name, r.Key)
			}
			o.note(in, string(r.Key), masked, what)
		}
	}
}

// mask returns a record without its times, the record encoded again, and a description.
func mask(key, value []byte) (masked, again []byte, what string, err error) {
	switch kind := batch.KindOf(value); kind {
	case batch.KindInURL:
		in, err := batch.ReadInURL(key, value)
		return value, in.Append(nil), fmt.Sprintf("%+v", in), err
	case batch.KindOutLinks:
		out, err := batch.ReadOutLinks(key, value)
		again = out.Append(nil)
		out.Time = time.Time{}
		return out.Append(nil), again, fmt.Sprintf("%.300s", fmt.Sprintf("%+v", out)), err
	case batch.KindRobots:
		r, err := batch.ReadRobotsRecord(key, value)
		again = r.Append(nil)
		r.Time, r.Exchange.Time, r.Exchange.Took = time.Time{}, time.Time{}, 0
		return r.Append(nil), again, fmt.Sprintf("%d %.100q %s", r.Status, r.Body, r.RedirectTo), err
	case batch.KindKnown:
		k, err := batch.ReadKnown(key, value)
		again = k.Append(nil)
		k.First, k.Visits.Last, k.Visits.Due, k.Stored.Time = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		return k.Append(nil), again, fmt.Sprintf("%+v", k), err
	case batch.KindDocument:
		d, err := batch.ReadDocument(key, value)
		again = d.Append(nil)
		d.Time, d.Took, d.SameAs.Time = time.Time{}, 0, time.Time{}
		masked = d.Append(nil)
		what = fmt.Sprintf("%d %s%s %s, from %q to %q, depth %d, %d redirects, %s %s %s, of %d bytes, asked by %q",
			d.Status, d.Failure, d.Rule, d.Change, d.From, d.RedirectTo, d.Depth, d.Redirects, d.Addr, d.Charset, d.Lang,
			len(d.Raw), d.Request)
		return masked, again, what, err
	default:
		return nil, nil, "", fmt.Errorf("%q is a record of kind %c", key, kind)
	}
}

var fetchedElement = regexp.MustCompile(`<fetched>[^<]*</fetched>`)

// xml reads a folder of XML and the other files in it.
func (o *outcomeReader) xml(folder string) {
	o.Helper()
	names, err := batch.ListFiles(o.Context(), o.place.at, folder)
	if err != nil {
		o.Fatal(err)
	}
	parts := map[string][]byte{}
	pages, indexed := 0, 0
	for _, name := range names {
		data, err := place.ReadFile(o.Context(), o.place.at, name)
		if err != nil {
			o.Fatal(err)
		}
		if strings.HasSuffix(name, ".xml") {
			parts[path.Base(name)] = data
			pages += o.pages(folder, data)
		}
	}
	for _, name := range names {
		switch base := path.Base(name); {
		case parts[base] != nil:
		case base == batch.IndexName:
			indexed = o.index(folder, name, parts)
		default:
			data, err := place.ReadFile(o.Context(), o.place.at, name)
			if err != nil {
				o.Fatal(err)
			}
			o.note(name, "", data, string(data))
		}
	}
	if pages != indexed {
		o.Errorf("%s: %d pages, and %d in the index", folder, pages, indexed)
	}
	schema, err := place.ReadFile(o.Context(), o.place.at, path.Join(path.Dir(folder), xml.SchemaName))
	if err == nil {
		o.note(path.Dir(folder), xml.SchemaName, schema, "")
	} else if pages > 0 {
		o.Error(err)
	}
}

func (o *outcomeReader) pages(folder string, data []byte) (n int) {
	o.Helper()
	if !bytes.HasPrefix(data, []byte(xml.Header)) || !bytes.HasSuffix(data, []byte(xml.Footer)) {
		o.Errorf("%s: a document begins with %.200q and ends with %q", folder, data, data[max(0, len(data)-50):])
	}
	for in := xml.NewReader(bytes.NewReader(data)); ; n++ {
		line, _, err := in.Next()
		if err != nil {
			return n // at the end of the part
		}
		r, err := xml.Parse(line)
		if err != nil {
			o.Fatal(err)
		}
		if !bytes.Equal(xml.Append(nil, &r), line) {
			o.Errorf("%s: %s is not the same when it is written again", folder, r.URL)
		}
		o.note(folder, r.URL, fetchedElement.ReplaceAll(line, nil), fmt.Sprintf("%s %s", r.Encoding, r.Language))
	}
}

func (o *outcomeReader) index(folder, name string, parts map[string][]byte) (n int) {
	o.Helper()
	data, err := place.ReadFile(o.Context(), o.place.at, name)
	if err != nil {
		o.Fatal(err)
	}
	last := ""
	for line := range bytes.Lines(data) {
		e, err := batch.ParseEntry(line)
		if err != nil {
			o.Fatal(err)
		}
		part := parts[e.Part]
		if e.Offset+e.Length > int64(len(part)) {
			o.Fatalf("%s: %s lies beyond the end of %s", name, e.URL, e.Part)
		}
		r, err := xml.Parse(part[e.Offset : e.Offset+e.Length])
		if err != nil || r.URL != e.URL || !r.Fetched.Equal(e.Fetched) || e.URL <= last {
			o.Errorf("%s: %s behind %s; there lies %s: %v", name, e.URL, last, r.URL, err)
		}
		last = e.URL
		n++
		e.Part, e.Offset, e.Fetched = "", 0, time.Time{}
		text, err := json.Marshal(&e)
		if err != nil {
			o.Fatal(err)
		}
		o.note(folder, batch.IndexName, text, string(text))
	}
	return n
}

var timeMember = regexp.MustCompile(`"time":"[^"]*",`)

// jsonLines reads a folder of extracted records or of rule reports; on the first day some must exist. A report is one
// record.
func (o *outcomeReader) jsonLines(folder string) {
	o.Helper()
	names, err := batch.ListFiles(o.Context(), o.place.at, folder)
	if err != nil {
		o.Fatal(err)
	}
	records := 0
	for _, name := range names {
		data, err := place.ReadFile(o.Context(), o.place.at, name)
		if err != nil {
			o.Fatal(err)
		}
		if path.Base(name) == batch.FieldsReportName {
			o.note(folder, batch.FieldsReportName, data, string(data))
			continue
		}
		for line := range bytes.Lines(data) {
			var r struct{ URL, Rule string }
			if err := json.Unmarshal(line, &r); err != nil || r.URL == "" {
				o.Fatalf("%s: %v in %.200q", name, err, line)
			}
			records++
			o.note(folder, r.URL, timeMember.ReplaceAll(line, nil), r.Rule)
		}
	}
	if records == 0 && o.date == o.batchLab.date(0) {
		o.Errorf("%s: %s has no records", o.place.name, folder)
	}
}

// state reads the list of jobs and their counts.
func (o *outcomeReader) state(c *collection.Collection, n int) {
	o.Helper()
	for _, d := range o.batchLab.state(o.place, c, n).Done {
		text := fmt.Sprint(d.Step, d.Counters)
		o.note(c.Directory+"/state", fmt.Sprint(d.Step), []byte(text), text)
	}
}

// same compares the outputs of two crawls.
func same(t *testing.T, a, b []string) {
	t.Helper()
	only := func(a, b []string) (found []string) {
		for _, line := range a {
			if _, is := slices.BinarySearch(b, line); !is {
				found = append(found, line)
			}
		}
		return found
	}
	left, right := only(a, b), only(b, a)
	if len(left) == 0 && len(right) == 0 && len(a) == len(b) {
		t.Logf("%d records, all the same", len(a))
		return
	}
	t.Errorf("%d records and %d; %d and %d are only on one side:", len(a), len(b), len(left), len(right))
	for i := range min(20, max(len(left), len(right))) {
		for _, side := range []struct {
			name  string
			lines []string
		}{{"one", left}, {"other", right}} {
			if i < len(side.lines) {
				t.Logf("%s: %s", side.name, side.lines[i])
			}
		}
	}
}
