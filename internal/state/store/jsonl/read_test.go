package jsonl

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/state/store/storetest"
)

func lineOf(rec *page.Record) []byte {
	var p PageLine
	p.set(rec)
	return p.Append(nil)
}

func TestLinesComeBack(t *testing.T) {
	rec, skip := storetest.Record(1), storetest.Skip(2)
	rec.Page.Heading, rec.Response.FirstByte = "One", 3e6
	rec.Page.Variants = []page.Variant{{Lang: "de", URL: "https://example.org/de"}}
	rec.Response.Addr = netip.MustParseAddrPort("[::ffff:192.0.2.7]:443")
	rec.Rendering = &page.Rendering{Requests: 2, Took: time.Second, Shots: []page.Shot{
		{Kind: page.ShotView, Data: []byte("abc")}, {Kind: page.ShotPDF, Data: []byte("%PDF-")}}}
	text := lineOf(rec)
	p, err := ParsePage(text)
	if err != nil || p.URL != rec.URL || p.Status != rec.Response.Status || p.Bytes != int64(len(rec.Response.Payload)) ||
		p.From != rec.From || p.H1 != "One" || p.FirstByteMS != 3 || p.TotalMS != 45 ||
		len(p.HrefLang) != 1 || p.HrefLang[0] != (page.Variant{Lang: "de", URL: "https://example.org/de"}) ||
		p.ServerIP != netip.MustParseAddr("192.0.2.7") || !bytes.Equal(p.Append(nil), text) {
		t.Errorf("%s came back as %+v, %v, and is written as %s", text, p, err, p.Append(nil))
	}
	if want := ParseScreenshots("view=3 pdf=5"); !slices.Equal(p.Screenshots, want) || len(want) != 2 {
		t.Errorf("screenshots: %v, want %v", p.Screenshots, want)
	}
	text = appendSkip(nil, skip)
	s, err := ParseSkip(text)
	if err != nil || s.URL != skip.URL || s.Rule != skip.Rule || s.Why != skip.Why || s.Depth != skip.Depth {
		t.Errorf("%s came back as %+v, %v", text, s, err)
	}
	for _, bad := range []string{``, `{`, `{"url":"a"} x`, `{"url":1}`, `{"uri":"a"}`} {
		if _, err := ParsePage([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a line", bad)
		}
	}
}

// TestUnknownMembers tests that lines of later versions are read, whatever members they add.
func TestUnknownMembers(t *testing.T) {
	rec, skip := storetest.Record(1), storetest.Skip(2)
	newer := func(line []byte) []byte {
		return append([]byte(`{"unheard":{"of":[1,"}"]},`), line[1:]...)
	}
	text := lineOf(rec)
	want, err := ParsePage(text)
	got, newErr := ParsePage(newer(text))
	if err != nil || newErr != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v, %v", got, newErr, want, err)
	}
	text = appendSkip(nil, skip)
	wantSkip, err := ParseSkip(text)
	gotSkip, newErr := ParseSkip(newer(text))
	if err != nil || newErr != nil || gotSkip != wantSkip {
		t.Errorf("%+v, %v, want %+v, %v", gotSkip, newErr, wantSkip, err)
	}
	if _, err := ParseFields(newer([]byte(`{"url":"a","rule":"r","time":"2026-01-02T03:04:05Z","fields":{}}`))); err != nil {
		t.Error(err)
	}
}

// TestMembersAreKnown tests that the reader knows all members that are written.
func TestMembersAreKnown(t *testing.T) {
	rec, skip := storetest.Record(1), storetest.Skip(2)
	rec.Page.Variants = []page.Variant{{Lang: "de", URL: "https://example.org/de"}}
	for _, c := range []struct {
		line []byte
		into any
	}{{lineOf(rec), &PageLine{}}, {appendSkip(nil, skip), &SkipLine{}}} {
		d := json.NewDecoder(bytes.NewReader(c.line))
		d.DisallowUnknownFields()
		if err := d.Decode(c.into); err != nil {
			t.Errorf("%s: %v", c.line, err)
		}
	}
}
