package check

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"
)

const (
	pdf     = "%PDF-1.7\n"
	png     = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	sitemap = `<?xml version="1.0"?><urlset><url><loc>/1</loc></url></urlset>`
)

func TestLinksOfBodies(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write([]byte(sitemap))
	w.Close()
	for _, c := range []struct {
		say  string
		in   LinksIn
		want string // kind of the first link
		note string
	}{
		{"HTML without a word", LinksIn{PageIn: PageIn{HTML: []byte(`x <a href=/>`)}}, "a", ""},
		{"XHTML", LinksIn{PageIn: PageIn{HTML: []byte(`<?xml version="1.0"?><html><a href="/"/></html>`)}}, "a", ""},
		{"a page about urlset", LinksIn{PageIn: PageIn{HTML: []byte(`<p>urlset <a href=/>`)}}, "a", ""},
		{"a sitemap", LinksIn{PageIn: PageIn{HTML: []byte(sitemap)}}, "listed", ""},
		{"a packed sitemap", LinksIn{PageIn: PageIn{HTML: packed.Bytes()}}, "listed", ""},
		{"one broken off", LinksIn{PageIn: PageIn{HTML: packed.Bytes()[:packed.Len()-9]}}, "listed", "unexpected EOF"},
		{"plain text", LinksIn{PageIn: PageIn{HTML: []byte("see http://a.example/"), ContentType: "text/plain"}}, "text", ""},
		{"text with links of which nothing is said, fetched",
			LinksIn{PageIn: PageIn{HTML: []byte("see http://a.example/"), Header: http.Header{}}}, "text", ""},
		{"a redirect", LinksIn{PageIn: PageIn{Status: 302, Header: http.Header{"Location": {"http://a.example/"}}}},
			"redirect", ""},
		{"nothing", LinksIn{}, "", ""},
		{"a PDF", LinksIn{PageIn: PageIn{HTML: []byte(pdf), ContentType: "text/html"}}, "",
			"the body is application/pdf: kumo reads no links in it"},
		{"a picture", LinksIn{PageIn: PageIn{HTML: []byte(png)}}, "", "the body is image/png: kumo reads no links in it"},
	} {
		out, err := Links(c.in)
		got := ""
		if len(out.Links) > 0 {
			got = out.Links[0].Kind
		}
		if err != nil || got != c.want || !strings.Contains(Note(out), c.note) || (c.note == "") != (Note(out) == "") {
			t.Errorf("%s: %q, %q, %v", c.say, got, Note(out), err)
		}
	}
}

func TestLangOfBodies(t *testing.T) {
	const german = "Der Zug fährt heute leider erst um halb neun vom anderen Bahnsteig ab."
	const russian = "Поезд сегодня отправляется с другого пути только в половине девятого."
	for _, c := range []struct {
		say       string
		in        PageIn
		want      string
		confident bool
	}{
		{"plain text", PageIn{HTML: []byte(german)}, "de", true},
		{"with a mark", PageIn{HTML: []byte("\uFEFF" + german)}, "de", true},
		{"in UTF-16 with a mark", PageIn{HTML: encode(t, "utf-16le", german)}, "de", true},
		{"in UTF-16 without", PageIn{HTML: encode(t, "utf-16le", german)[2:]}, "de", true},
		{"in KOI8-R", PageIn{HTML: encode(t, "koi8-r", russian)}, "ru", true},
		{"declared", PageIn{HTML: encode(t, "windows-1251", russian), ContentType: "text/plain; charset=windows-1251"}, "ru",
			true},
		{"a page", PageIn{HTML: []byte("<html><script>the end of this and that</script><p>" + german)}, "de", false},
		{"a page, fetched", PageIn{HTML: []byte("<p>" + russian), Header: http.Header{"Content-Type": {"text/html"}}}, "ru",
			false},
		{"a page without words", PageIn{HTML: []byte("<html>")}, "", false},
	} {
		out, err := Lang(LangIn{Page: &c.in})
		if err != nil || out.Lang != c.want || (out.Confidence != nil) != c.confident {
			t.Errorf("%s: %+v, %v", c.say, out, err)
		}
	}
	for _, body := range []string{pdf, png, "\x01\x02\x03\x04\x05"} {
		if _, err := Lang(LangIn{Page: &PageIn{HTML: []byte(body)}}); err == nil ||
			!strings.Contains(err.Error(), "not text") {
			t.Errorf("%q: error %v", body, err)
		}
	}
}

func TestCharsetOfBodies(t *testing.T) {
	for _, c := range []struct {
		in         CharsetIn
		name, want string
	}{
		{CharsetIn{Body: []byte(pdf)}, "", "the body is application/pdf, which is not text"},
		{CharsetIn{Body: []byte(png), ContentType: "text/html; charset=koi8-r"}, "", "the body is image/png"},
		{CharsetIn{Body: []byte("\x01\x02\x03\x04\x05")}, "", "the body is application/octet-stream"},
		{CharsetIn{Body: encode(t, "utf-16le", "the sun rises late today")[2:]}, "utf-16le", "<nil>"},
		{CharsetIn{Body: []byte("BMW, MZ and others")}, "utf-8", "<nil>"}, // begins with the signature of an image type
		{CharsetIn{}, "utf-8", "<nil>"},
	} {
		out, err := Charset(c.in)
		got := "<nil>"
		if err != nil {
			got = err.Error()
		}
		if out.Name != c.name || !strings.HasPrefix(got, c.want) {
			t.Errorf("%.20q: %+v, %v", c.in.Body, out, err)
		}
	}
}

func TestSitemap(t *testing.T) {
	const want = `{"entries":[{"url":"http://a.example/1","kind":"listed","modified":"","priority":0.5}]}`
	if got := asJSON(t, Sitemap, SitemapIn{Body: []byte(sitemap), URL: "http://a.example/s"}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := Sitemap(SitemapIn{Body: []byte(pdf)}); err == nil || !strings.Contains(err.Error(),
		"neither sitemap nor feed") {
		t.Errorf("error %v", err)
	}
}

func TestIsMediaType(t *testing.T) {
	for s, want := range map[string]bool{"text/html": true, " Image/PNG; q=1": true, "x-world/x-3dmf": true, "text": false,
		"nosuch/file.pdf": false, "./a.pdf": false, "/text/html": false, "": false} {
		if IsMediaType(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}
