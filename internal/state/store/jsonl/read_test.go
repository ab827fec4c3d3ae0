package jsonl

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"kumo/internal/base/page"
	"kumo/internal/state/store/storetest"
)

func TestLinesComeBack(t *testing.T) {
	rec, skip := storetest.Record(1), storetest.Skip(2)
	rec.Page.Heading, rec.Response.FirstByte = "One", 3e6
	rec.Page.Variants = []page.Variant{{Lang: "de", URL: "https://example.org/de"}}
	var l line
	l.page(rec)
	p, err := ParsePage(l.b)
	if err != nil || p.URL != rec.URL || p.Status != rec.Response.Status || p.Bytes != int64(len(rec.Response.Payload)) ||
		p.From != rec.From || p.H1 != "One" || p.FirstByteMS != 3 || p.TotalMS != 45 ||
		len(p.HrefLang) != 1 || p.HrefLang[0] != (Variant{"de", "https://example.org/de"}) {
		t.Errorf("%s came back as %+v, %v", l.b, p, err)
	}
	l.b = nil
	l.skip(skip)
	s, err := ParseSkip(l.b)
	if err != nil || s.URL != skip.URL || s.Rule != skip.Rule || s.Why != skip.Why || s.Depth != skip.Depth {
		t.Errorf("%s came back as %+v, %v", l.b, s, err)
	}
	for _, bad := range []string{``, `{`, `{"url":"a"} x`, `{"url":1}`, `{"uri":"a"}`} {
		if _, err := ParsePage([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a line", bad)
		}
	}
}

// TestUnknownMembers tests that lines of a newer kumo are read, whatever else they have.
func TestUnknownMembers(t *testing.T) {
	rec, skip := storetest.Record(1), storetest.Skip(2)
	newer := func(line []byte) []byte {
		return append([]byte(`{"unheard":{"of":[1,"}"]},`), line[1:]...)
	}
	var l line
	l.page(rec)
	want, err := ParsePage(l.b)
	got, newErr := ParsePage(newer(l.b))
	if err != nil || newErr != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v, %v", got, newErr, want, err)
	}
	l.b = nil
	l.skip(skip)
	wantSkip, err := ParseSkip(l.b)
	gotSkip, newErr := ParseSkip(newer(l.b))
	if err != nil || newErr != nil || gotSkip != wantSkip {
		t.Errorf("%+v, %v, want %+v, %v", gotSkip, newErr, wantSkip, err)
	}
	if _, err := ParseFields(newer([]byte(`{"url":"a","rule":"r","time":"2026-01-02T03:04:05Z","fields":{}}`))); err != nil {
		t.Error(err)
	}
}

// TestMembersAreKnown tests that what is written is read: no member is unknown to its own reader.
func TestMembersAreKnown(t *testing.T) {
	rec, skip := storetest.Record(1), storetest.Skip(2)
	rec.Page.Variants = []page.Variant{{Lang: "de", URL: "https://example.org/de"}}
	for _, c := range []struct {
		write func(*line)
		into  any
	}{{func(l *line) { l.page(rec) }, &PageLine{}}, {func(l *line) { l.skip(skip) }, &SkipLine{}}} {
		var l line
		c.write(&l)
		d := json.NewDecoder(bytes.NewReader(l.b))
		d.DisallowUnknownFields()
		if err := d.Decode(c.into); err != nil {
			t.Errorf("%s: %v", l.b, err)
		}
	}
}
