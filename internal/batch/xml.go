package batch

import (
	"cmp"
	"context"

	"kumo/internal/base/page"
	"kumo/internal/content/parse"
	"kumo/internal/state/store/xml"
)

// xml writes the texts of the day's pages. Pages in other languages than the collection's go to a separate folder.
// Pages that have not changed are in the files of an earlier day.
func (s *setup) xml() *Job { return &Job{Name: JobXML, Map: s.xmlMap, Route: s.route} }

func (s *setup) xmlMap(_ context.Context, t *Task, r Record, emit Emit) error {
	d, err := ReadDocument(r.Key, r.Value)
	if err != nil {
		return err
	}
	m, err := s.member(d.Collection)
	if err != nil {
		return err
	}
	if !d.IsPage() || d.Change == page.Unchanged {
		return nil
	}
	if err := m.fields(t, &d, emit); err != nil {
		return err
	}
	if !parse.IsHTML(d.Type) && d.Text == "" { // documents have a text
		return nil
	}
	if !d.MetaIndex || d.NoArchive {
		m.count(t, "noindex", 1)
		return nil
	}
	if d.Text == "" {
		m.count(t, "without text", 1)
	}
	kind := KindPage
	if m.Language.Accepts(d.Lang, float64(d.Share), float64(d.Confidence)) { // or its language is unknown
		m.count(t, "kept", 1)
		m.count(t, "kept bytes", int64(len(d.Raw)-d.HeadLen))
	} else {
		kind = KindOther
		m.count(t, "apart: "+d.Lang, 1)
	}
	return emit(r.Key, xml.Append([]byte{byte(kind)}, &xml.Record{URL: d.URL, Fetched: d.Time, Directory: m.Directory,
		Encoding: d.Charset, EncodingFrom: d.CharsetHow, Language: d.Lang, Share: d.Share, Confidence: d.Confidence,
		Digest: d.Digest, Simhash: d.Simhash, Headline: cmp.Or(d.Headline, d.Title), Content: d.Text}))
}
