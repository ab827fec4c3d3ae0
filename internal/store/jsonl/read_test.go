package jsonl

import (
	"testing"

	"kumo/internal/page"
	"kumo/internal/store/storetest"
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
