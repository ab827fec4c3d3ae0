package parse

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kumo/internal/base/page"
)

func parseWith(t *testing.T, cfg Config, header http.Header, body string) *page.Page {
	t.Helper()
	var pg page.Page
	if header.Get("Content-Type") == "" {
		header = header.Clone()
		if header == nil {
			header = http.Header{}
		}
		header.Set("Content-Type", "text/html")
	}
	if err := New(cfg).Parse(&page.Response{URL: testURL, Status: 200, Header: header, Body: []byte(body)},
		&pg); err != nil {
		t.Fatal(err)
	}
	return &pg
}

// rules formats robots rules.
func rules(r page.Robots) string {
	var out []string
	for name, is := range map[string]bool{"1 noindex": r.NoIndex, "2 nofollow": r.NoFollow, "3 noarchive": r.NoArchive} {
		if is {
			out = append(out, name)
		}
	}
	if !r.UnavailableAfter.IsZero() {
		out = append(out, "4 until "+r.UnavailableAfter.Format(time.DateTime))
	}
	// By number, since the order of a map is random.
	for i := range out {
		for j := range i {
			if out[i] < out[j] {
				out[i], out[j] = out[j], out[i]
			}
		}
	}
	for i := range out {
		out[i] = out[i][2:]
	}
	return strings.Join(out, " ")
}

func TestRobotsMeta(t *testing.T) {
	for body, want := range map[string]string{
		`<meta name=robots content="NoIndex , follow">`:                                                                                      "noindex",
		`<META NAME="Robots" CONTENT="none">`:                                                                                                "noindex nofollow",
		`<meta name=robots content=all><meta name=kumo content=noarchive>`:                                                                   "noarchive",
		`<meta name=robots content=noindex><meta name=KUMO content=nofollow>`:                                                                "noindex nofollow",
		`<meta name=googlebot content=noindex><meta name=robots content>`:                                                                    "",
		`<meta name=robots content="max-snippet:-1, noindex">`:                                                                               "noindex",
		`<meta name=robots content="unavailable_after: 25 Jun 2010 15:00:00 PST,noindex">`:                                                   "noindex until 2010-06-25 23:00:00",
		`<meta name=robots content="unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, none">`:                                               "noindex nofollow until 2010-06-25 15:00:00",
		`<meta name=robots content="unavailable_after: 2020-09-21"><meta name=robots content="unavailable_after:2019-01-02T03:04:05+01:00">`: "until 2019-01-02 02:04:05",
		`<meta name=robots content="unavailable_after: soon, noindex">`:                                                                      "noindex",
		`<meta name=robots content="unavailable_after: Fri Jun 25 15:00:00 2010">`:                                                           "until 2010-06-25 15:00:00",
		`<iframe srcdoc="<meta name=robots content=noindex>"></iframe>`:                                                                      "",
		`<meta http-equiv=robots content=noindex><meta property=robots content=none>`:                                                        "noindex nofollow",
	} {
		if got := rules(parseWith(t, Config{Agent: "kumo"}, nil, body).Robots); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}

func TestRobotsHeader(t *testing.T) {
	for _, c := range []struct {
		fields []string
		want   string
	}{
		{[]string{"noindex, nofollow"}, "noindex nofollow"},
		{[]string{"noindex", "Kumo: noarchive"}, "noindex noarchive"},
		{[]string{"otherbot: noindex, nofollow"}, ""},
		{[]string{"otherbot: noindex, kumo: nofollow, noarchive, third: none"}, "nofollow noarchive"},
		{[]string{"otherbot: noindex", "nofollow"}, "nofollow"},
		{[]string{"nofollow, otherbot: noindex"}, "nofollow"},
		{[]string{"otherbot: unavailable_after: 25 Jun 2010 15:00:00 GMT, noindex"}, ""},
		{[]string{"unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, noindex, max-image-preview: large"},
			"noindex until 2010-06-25 15:00:00"},
		{[]string{"unavailable_after"}, ""},
		{[]string{"unavailable_after: Jun 25, 2010 15:00:00 PST, noindex"}, "noindex until 2010-06-25 23:00:00"},
		{[]string{"unavailable_after: 25 June 2010, noindex"}, "noindex until 2010-06-25 00:00:00"},
		{[]string{"unavailable_after: 25-Jun-2010 15:00 CET"}, "until 2010-06-25 14:00:00"},
		{[]string{`unavailable_after: "2010-06-25T15:00:00+0100"`}, "until 2010-06-25 14:00:00"},
		{[]string{"since 2010 15: no, noindex"}, "noindex"},
		{[]string{"kumo/1.0: noarchive", "other/2: none"}, "noarchive"},
		{[]string{"noindex nofollow; noarchive"}, "noindex nofollow noarchive"},
		{[]string{":", ",,:,", " : noindex"}, "noindex"},
	} {
		pg := parseWith(t, Config{Agent: "kumo"}, http.Header{"X-Robots-Tag": c.fields}, "")
		if got := rules(pg.Robots); got != c.want {
			t.Errorf("%q: got %q, want %q", c.fields, got, c.want)
		}
	}
}

func TestRobotsAsWritten(t *testing.T) {
	pg := parseWith(t, Config{}, http.Header{"X-Robots-Tag": {"a: none", "noindex "}},
		"<meta name=robots content=' NoFollow'><meta name=robots content=x>"+strings.Repeat("<meta name=robots content='"+
			strings.Repeat("y", 999)+"'>", 99))
	if got := pg.Robots.Header; got != "a: none, noindex" {
		t.Errorf("header %q", got)
	}
	if got := pg.Robots.Meta; !strings.HasPrefix(got, "NoFollow, x, yyy") || len(got) > maxRobots+2 {
		t.Errorf("meta %q", got)
	}
}

func TestRefreshOfPage(t *testing.T) {
	for _, c := range []struct {
		field, body, url string
		after            int
	}{
		{"", `<meta http-equiv=refresh content="5; url=/x"><meta http-equiv=refresh content="1; url=/y">`, "http://h.test/x",
			5},
		{"", `<meta http-equiv=refresh content="30">`, testURL, 30},
		{"", `<meta http-equiv=refresh content="3; url=javascript:x"><meta http-equiv=refresh content="4; url=z">`,
			"http://h.test/d/z", 4},
		{"2; url=/h", `<meta http-equiv=refresh content="5; url=/x">`, "http://h.test/h", 2},
		{"", `<meta http-equiv=refresh content="soon">`, "", 0},
		{"", `<iframe srcdoc="<meta http-equiv=refresh content=5>"></iframe>`, "", 0},
	} {
		header := http.Header{}
		if c.field != "" {
			header.Set("Refresh", c.field)
		}
		pg := parseWith(t, Config{}, header, c.body)
		if pg.Refresh != c.url || pg.RefreshAfter != c.after {
			t.Errorf("%s %s: got %q after %d", c.field, c.body, pg.Refresh, pg.RefreshAfter)
		}
	}
}

func TestLinkData(t *testing.T) {
	pg := parseWith(t, Config{AnchorText: true}, http.Header{"Link": {`</de>; rel=alternate; hreflang=de; hreflang=no`}},
		`<a href=1 rel="Sponsored NOFOLLOW" hreflang=fr> un <b>deux</b><img alt="&amp; trois"><!-- no --><script>no</script>`+
			`<br>quatre <3</a>no<a href=2>open<a href=3></a><a href=3>later</a><link rel=alternate hreflang="x-default" href=4>`+
			`<a rel="ugcx xugc" href=5>`)
	var got []string
	for _, l := range pg.Links {
		flags := ""
		for i, is := range []bool{l.NoFollow, l.UGC, l.Sponsored} {
			if is {
				flags += string("nus"[i])
			}
		}
		got = append(got, strings.Join([]string{strings.TrimPrefix(l.URL, "http://h.test"), l.Lang, l.Text, flags}, "|"))
	}
	want := []string{"/de|de||", "/d/1|fr|un deux & trois quatre <3|ns", "/d/2||open|", "/d/3||later|", "/d/4|x-default||",
		"/d/5|||"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSniffed(t *testing.T) {
	for _, c := range []struct{ contentType, body, sniffed, want string }{
		{"text/html", "%PDF-1.7\n<a href=no>", "application/pdf", ""},
		{"text/html", "PK\x03\x04<a href=no>", "application/zip", ""},
		{"text/html", "<rss><a href=no>", "application/rss+xml", ""},
		{"text/html, text/plain", "<a href=1>", "text/html", "a /d/1"},
		{"nonsense", "<p><a href=1>", "text/html", "a /d/1"},
		{"text/css", "@import 'a.css'; p { x: url(\"b.png\") }", "text/css", "style /d/a.css, css /d/b.png"},
		{"text/plain", "see http://h.test/x.", "text/plain", "text /x"},
		{"text/javascript", "get('/api/x')", "text/javascript", "path /api/x"},
	} {
		pg := parseWith(t, Config{PlainText: true, Scripts: true}, http.Header{"Content-Type": {c.contentType}}, c.body)
		if pg.Sniffed != c.sniffed || links(pg) != c.want {
			t.Errorf("%s: got %s, %s", c.contentType, pg.Sniffed, links(pg))
		}
	}
	pg := parseWith(t, Config{}, nil, "<script>x = '/api/x'</script>")
	if len(pg.Links) > 0 {
		t.Errorf("scripts are read unasked: %s", links(pg))
	}
}

// A link may be followed if any of its occurrences on the page may.
func TestNofollowOfALinkMetAgain(t *testing.T) {
	for body, want := range map[string]string{
		`<a href=/x rel=nofollow><a href=/x>`:                  "",
		`<a href=/x><a href=/x rel=nofollow>`:                  "",
		`<a href=/x rel=nofollow><a href=/x rel=ugc>`:          "ugc",
		`<a href=/x rel="a nofollow"><a href=/x rel=nofollow>`: "a nofollow",
	} {
		pg := parseWith(t, Config{}, nil, body)
		if l := pg.Links[0]; len(pg.Links) != 1 || l.Rel != want || l.NoFollow != strings.Contains(want, "nofollow") {
			t.Errorf("%s: %+v", body, pg.Links)
		}
	}
}
