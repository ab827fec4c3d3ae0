package xml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// parsed is a document as encoding/xml reads it, independently of this package.
type parsed struct {
	Pages []parsedPage `xml:"page"`
}

type parsedPage struct {
	URL       string `xml:"url"`
	Fetched   string `xml:"fetched"`
	Directory string `xml:"directory"`
	Encoding  struct {
		Name string `xml:",chardata"`
		From string `xml:"from,attr"`
	} `xml:"encoding"`
	Language struct {
		Code       string `xml:",chardata"`
		Share      string `xml:"share,attr"`
		Confidence string `xml:"confidence,attr"`
	} `xml:"language"`
	Digest   string `xml:"digest"`
	Simhash  string `xml:"simhash"`
	Headline string `xml:"headline"`
	Content  string `xml:"content"`
}

func document(records ...*Record) []byte {
	b := []byte(Header)
	for _, r := range records {
		b = Append(b, r)
	}
	return append(b, Footer...)
}

var day = time.Date(2026, 11, 21, 3, 4, 5, 0, time.UTC)

// odd returns records that are hard to encode.
func odd() []*Record {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	return []*Record{
		{URL: "http://a.test/?a=1&b=<2>", Fetched: day, Directory: "crawler_zh", Encoding: "gbk", EncodingFrom: "meta",
			Language: "zh", Share: 0.875, Confidence: 1, Simhash: 0xfedcba9876543210, Digest: [20]byte{1, 2, 3},
			Headline: "标题 ]]> & \"quoted\"",
			Content:  "one\ntwo\r\n\tthree\x00\x0b\x1f\uffff\U0010ffff" + string(every)},
		{URL: "http://b.test/", Fetched: day, Directory: "crawler_zh"},
		{URL: "http://c.test/", Fetched: day, Directory: "crawler_ar", Encoding: "windows-1256",
			EncodingFrom: "detected", Language: "ar", Headline: "\u202eسلام\u202c\ufeff \x1b[31m \u0085 \u2028 \u2029",
			Content: "</content></page>\n<page>"},
	}
}

func TestADocumentIsReadAsItWasWritten(t *testing.T) {
	data := document(odd()...)
	if n := strings.Count(string(data), "\n"); n != 3+len(odd()) ||
		strings.ContainsAny(string(data), "\x1b\u0085\u2028\u2029\u009b") {
		t.Errorf("%d lines, where each record and tag has one", n)
	}
	var got parsed
	if err := xml.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Pages) != len(odd()) {
		t.Fatalf("%d pages", len(got.Pages))
	}
	for i, r := range odd() {
		p := got.Pages[i]
		if p.URL != r.URL || p.Headline != Clean(r.Headline) || p.Fetched != "2026-11-21T03:04:05Z" ||
			p.Directory != r.Directory ||
			p.Content != Clean(r.Content) || p.Encoding.Name != r.Encoding || p.Encoding.From != r.EncodingFrom ||
			p.Language.Code != r.Language {
			t.Errorf("%+v, want %+v", p, r)
		}
	}
	p := got.Pages[0]
	if p.Simhash != "fedcba9876543210" || p.Language.Share != "0.875" || p.Language.Confidence != "1.000" ||
		p.Digest != "sha1:AEBAGAAAAAAAAAAAAAAAAAAAAAAAAAAA" {
		t.Errorf("%+v", p)
	}
	if !strings.HasPrefix(p.Content, "one\ntwo\r\n\tthree\ufffd\ufffd\ufffd\ufffd\U0010ffff") {
		t.Errorf("content %.60q", p.Content)
	}
}

func TestAReaderFindsRecordsWhereTheyLie(t *testing.T) {
	data := document(odd()...)
	r := NewReader(bytes.NewReader(data))
	for _, want := range odd() {
		line, offset, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data[offset:offset+int64(len(line))], line) {
			t.Errorf("a line at %d is elsewhere", offset)
		}
		got, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		clean := *want
		clean.Headline, clean.Content = Clean(want.Headline), Clean(want.Content)
		if got != clean {
			t.Errorf("got %+v\nwant %+v", got, clean)
		}
	}
	if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestADamagedDocumentIsAnError(t *testing.T) {
	whole := document(odd()...)
	for n := range len(whole) { // truncated anywhere
		r := NewReader(bytes.NewReader(whole[:n]))
		var err error
		for err == nil {
			_, _, err = r.Next()
		}
		if !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut off at %d: %v", n, err)
		}
	}
	line := string(Append(nil, odd()[0]))
	for _, change := range [][2]string{{"<url>", "<uri>"}, {"&lt;", "&lr;"}, {"&lt;", "&lt"}, {"05Z", "5Z"},
		{"</page>", ""}, {"sha1:A", "sha1:"}, {"fedc", "xedc"}, {`share="`, `share="x`}, {"&#10;", "&#1114112;"},
		{"<page>", "<page> "}} {
		damaged := strings.Replace(line, change[0], change[1], 1)
		if _, err := Parse([]byte(damaged)); !errors.Is(err, ErrDamaged) || damaged == line {
			t.Errorf("%q for %q: %v", change[1], change[0], err)
		}
	}
}

// TestTheSchemaHolds validates the output with another reader, and checks that the schema rejects invalid documents.
func TestTheSchemaHolds(t *testing.T) {
	if _, err := exec.LookPath("xmllint"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("xmllint is missing: install libxml2-utils")
		}
		t.Skip("SKIPPED: the validation against the schema needs xmllint, of libxml2-utils")
	}
	dir := t.TempDir()
	schema := filepath.Join(dir, SchemaName)
	if err := os.WriteFile(schema, Schema, 0o666); err != nil {
		t.Fatal(err)
	}
	lint := func(data []byte) (string, error) {
		name := filepath.Join(dir, "part-00000.xml")
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("xmllint", "--noout", "--schema", schema, name).CombinedOutput()
		return string(out), err
	}
	for _, data := range [][]byte{document(odd()...), document(), Append(nil, odd()[0])} {
		if out, err := lint(data); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	for _, change := range [][2]string{{"<headline>", "<title/><headline>"}, {"05Z", "05+01:00"}, {"sha1:A", "sha1:a"},
		{"0.875", "1.875"}, {"fedc", "fed"}, {`"meta"`, `"guess"`}, {"crawler_zh", ""}} {
		damaged := bytes.Replace(document(odd()...), []byte(change[0]), []byte(change[1]), 1)
		if out, err := lint(damaged); err == nil {
			t.Errorf("the schema takes %q for %q: %s", change[1], change[0], out)
		}
	}
}

// FuzzAppend reads the output with two readers.
func FuzzAppend(f *testing.F) {
	f.Add("http://a.test/", "meta", "de", "h", "c\x00\xff<>&\"'\r\n", uint64(1))
	for _, r := range odd() {
		f.Add(r.URL, r.EncodingFrom, r.Language, r.Headline, r.Content, r.Simhash)
	}
	f.Fuzz(func(t *testing.T, url, from, language, headline, content string, simhash uint64) {
		r := Record{URL: url, Fetched: day, Directory: "d", EncodingFrom: from, Language: language,
			Headline: headline, Content: content, Simhash: simhash}
		data := document(&r, &r)
		var got parsed
		if err := xml.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Pages) != 2 || bytes.Count(data, []byte("\n")) != 5 {
			t.Fatalf("%d pages", len(got.Pages))
		}
		p := got.Pages[1]
		if p.URL != Clean(url) || p.Language.Code != Clean(language) || p.Headline != Clean(headline) ||
			p.Content != Clean(content) || p.Encoding.From != Clean(from) {
			t.Errorf("%+v, written %+v", p, r)
		}
		own, err := Parse(Append(nil, &r))
		if url == "" {
			return
		}
		want := r
		want.URL, want.EncodingFrom, want.Language = p.URL, p.Encoding.From, p.Language.Code
		want.Headline, want.Content = p.Headline, p.Content
		if err != nil || own != want {
			t.Errorf("%+v, %v, want %+v", own, err, want)
		}
	})
}

// FuzzParse tests that no line panics the reader, and that accepted lines are XML.
func FuzzParse(f *testing.F) {
	for _, r := range odd() {
		f.Add(Append(nil, r))
	}
	f.Fuzz(func(_ *testing.T, line []byte) {
		_, _ = Parse(line)
		r := NewReader(bytes.NewReader(line))
		for {
			if _, _, err := r.Next(); err != nil {
				return
			}
		}
	})
}

// Clean returns a text as a reader gets it: characters that XML does not allow and invalid UTF-8 are U+FFFD.
func Clean(text string) string {
	clean := make([]byte, 0, len(text))
	for _, c := range text {
		if !isChar(c) && c != '\n' && c != '\r' && c != '\t' {
			c = utf8.RuneError
		}
		clean = utf8.AppendRune(clean, c)
	}
	return string(clean)
}
