package choices

import (
	"encoding/json"
	stdmime "mime"
	"net/http"
	"strings"
	"testing"

	"github.com/gabriel-vasile/mimetype"

	"kumo/internal/content/mime"
)

// TestMediaType counts the standard's media types that are parsed and written correctly.
func TestMediaType(t *testing.T) {
	type vector struct {
		Input  string
		Output *string
	}
	var cases []vector
	for _, file := range []string{"mime-types.json", "generated-mime-types.json"} {
		var raw []json.RawMessage
		if err := json.Unmarshal(readFile(t, testdata(t, "http", file)), &raw); err != nil {
			t.Fatal(err)
		}
		for _, one := range raw {
			var v vector
			if one[0] == '"' {
				continue
			}
			if err := json.Unmarshal(one, &v); err != nil {
				t.Fatal(err)
			}
			cases = append(cases, v)
		}
	}
	for _, p := range []struct {
		name  string
		parse func(in string) (string, bool)
	}{
		{"kumo", func(in string) (string, bool) {
			m, ok := mime.Parse(in)
			return m.String(), ok
		}},
		{"mime", func(in string) (string, bool) {
			name, params, err := stdmime.ParseMediaType(in)
			return strings.ReplaceAll(stdmime.FormatMediaType(name, params), "; ", ";"), err == nil
		}},
	} {
		right := 0
		for _, v := range cases {
			if got, ok := p.parse(v.Input); ok == (v.Output != nil) && (!ok || got == *v.Output) {
				right++
			}
		}
		t.Logf("%-5s %d of %d", p.name, right, len(cases))
	}
}

// sniffers detect a body's type; declared is its Content-Type.
var sniffers = []struct {
	name  string
	sniff func(body []byte, declared string) string
}{
	{"kumo", func(body []byte, declared string) string { return mime.Sniff(body, declared, false).Essence() }},
	{"mimetype", func(body []byte, _ string) string { return essence(mimetype.Detect(body).String()) }},
	{"net/http", func(body []byte, _ string) string { return essence(http.DetectContentType(body)) }},
}

func essence(t string) string {
	t, _, _ = strings.Cut(t, ";")
	return t
}

const xml = "<?xml version='1.0'?>"

// bodies are typical bodies, with the declared type and the type by the standard, or by inspection if the declared type
// is nonsense.
var bodies = []struct{ name, body, declared, want string }{
	{"page", "<!DOCTYPE html><title>x</title>", "text/html", "text/html"},
	{"page without a doctype", "<p class=x>text</p>", "text/html", "text/html"},
	{"page of text alone", "hello, world", "text/html", "text/html"},
	{"page, undeclared", "\n <html><body>", "", "text/html"},
	{"XHTML as HTML", xml + "<!DOCTYPE html><html xmlns='http://www.w3.org/1999/xhtml'>", "text/html", "text/html"},
	{"XHTML", xml + "<html xmlns='http://www.w3.org/1999/xhtml'>", "application/xhtml+xml", "application/xhtml+xml"},
	{"page that begins with a comment", "<!-- made by hand --><html>", "text/html", "text/html"},
	{"page in UTF-16", "\xff\xfe<\x00h\x00t\x00m\x00l\x00>\x00", "text/html; charset=utf-16", "text/html"},
	{"source of a page as text", "<!DOCTYPE html><title>x</title>", "text/plain", "text/plain"},
	{"JSON", `{"a": [1, 2]}`, "application/json", "application/json"},
	{"style sheet", "a { color: red }", "text/css", "text/css"},
	{"script", "var a = 1;", "text/javascript", "text/javascript"},
	{"SVG", "<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml", "image/svg+xml"},
	{"RSS as HTML", xml + "<rss version='2.0'>", "text/html", "application/rss+xml"},
	{"Atom as HTML", "<feed xmlns='http://www.w3.org/2005/Atom'>", "text/html", "application/atom+xml"},
	{"Atom", xml + "<feed xmlns='http://www.w3.org/2005/Atom'>", "application/atom+xml", "application/atom+xml"},
	{"sitemap", xml + "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>", "text/xml", "text/xml"},
	{"PDF as HTML", "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "text/html; charset=utf-8", "application/pdf"},
	{"PDF, undeclared", "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "", "application/pdf"},
	{"PNG as HTML", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "text/html", "image/png"},
	{"PNG as JPEG", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "image/jpeg", "image/png"},
	{"archive as text", "PK\x03\x04\x14\x00\x00\x00\x08\x00", "text/plain", "application/zip"},
	{"binary by an old Apache", "\x00\x01\x02\x03", "text/plain; charset=ISO-8859-1", "application/octet-stream"},
	{"text that begins like a bitmap", "BMW <a href=x>", "text/html", "text/html"},
	{"text that begins like music", "ID3 tags", "text/html", "text/html"},
	{"text, undeclared", "plain words", "", "text/plain"},
	{"download of a page", "<html>", "application/octet-stream", "application/octet-stream"},
}

// TestSniff counts the bodies whose type is detected correctly.
func TestSniff(t *testing.T) {
	for _, s := range sniffers {
		right := 0
		var wrong []string
		for _, c := range bodies {
			if got := s.sniff([]byte(c.body), c.declared); got == c.want {
				right++
			} else {
				wrong = append(wrong, c.name+" is "+got)
			}
		}
		t.Logf("%-8s %d of %d; %s", s.name, right, len(bodies), strings.Join(wrong, "; "))
	}
}

// BenchmarkSniff detects the types of pages.
func BenchmarkSniff(b *testing.B) {
	all := corpus(b)
	var contenders []*contender
	for _, s := range sniffers {
		contenders = append(contenders, &contender{name: s.name, run: func() error {
			for _, page := range all {
				s.sniff(page, "text/html; charset=utf-8")
			}
			return nil
		}})
	}
	byTurns(b, "page", len(all), contenders...)
}
