package xml

import (
	"encoding/xml"
	"strings"
	"testing"
	"time"
)

type parsed struct {
	Pages []struct {
		URL       string `xml:"url"`
		Fetched   string `xml:"fetched"`
		Directory string `xml:"directory"`
		Encoding  string `xml:"encoding"`
		Language  string `xml:"language"`
		Headline  string `xml:"headline"`
		Content   string `xml:"content"`
	} `xml:"page"`
}

func document(records ...*Record) []byte {
	b := []byte(Header)
	for _, r := range records {
		b = Append(b, r)
	}
	return append(b, Footer...)
}

func TestADocumentIsReadAsItWasWritten(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	r := &Record{URL: "http://a.test/?a=1&b=<2>", Fetched: time.Date(2026, 11, 21, 3, 4, 5, 6, time.UTC),
		Directory: "crawler_zh", Encoding: "gbk", Language: "zh", Headline: "标题 ]]> & \"quoted\"",
		Content: "one\ntwo\r\n\tthree\x00\x0b\x1f\uffff\U0010ffff" + string(every)}
	data := document(r, &Record{})
	if n := strings.Count(string(data), "\n"); n != 5 {
		t.Errorf("%d lines, where each record and tag has one", n)
	}
	var got parsed
	if err := xml.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Pages) != 2 {
		t.Fatalf("%d pages", len(got.Pages))
	}
	p := got.Pages[0]
	if p.URL != r.URL || p.Headline != r.Headline || p.Fetched != "2026-11-21T03:04:05Z" || p.Language != "zh" ||
		p.Directory != r.Directory || p.Encoding != r.Encoding {
		t.Errorf("%+v", p)
	}
	if !strings.HasPrefix(p.Content, "one\ntwo\r\n\tthree\ufffd\ufffd\ufffd\ufffd\U0010ffff") {
		t.Errorf("content %.60q", p.Content)
	}
}

func FuzzAppend(f *testing.F) {
	f.Add("http://a.test/", "h", "c\x00\xff<>&\r\n")
	f.Fuzz(func(t *testing.T, url, headline, content string) {
		var got parsed
		if err := xml.Unmarshal(document(&Record{URL: url, Headline: headline, Content: content}), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Pages) != 1 {
			t.Fatalf("%d pages", len(got.Pages))
		}
	})
}
