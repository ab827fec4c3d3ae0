package check

import (
	"encoding/json"
	"net/http"
	"testing"
)

// asJSON returns a reader's output as a line of JSON.
func asJSON[In, Out any](t *testing.T, read func(In) (Out, error), in In) string {
	t.Helper()
	out, err := read(in)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

func TestRobots(t *testing.T) {
	const file = "User-agent: *\nDisallow: /\nAllow: /a\nRequest-rate: 2/10s 0800-1700\nClean-param: ref&sid " +
		"/a\nSitemap: http://a.example/s\n"
	const rest = `"crawl_delay":5,"sitemaps":["http://a.example/s"],` +
		`"request_rate":[{"requests":2,"seconds":10,"hours":"0800-1700"}],"clean_params":[{"params":["ref","sid"],"path":"/a"}]`
	for _, c := range []struct {
		say  string
		in   RobotsIn
		want string
	}{
		{"a line allows", RobotsIn{URL: "http://a.example/a?b"}, `{"allowed":true,"rule":"Allow: /a",` + rest + `}`},
		{"and forbids", RobotsIn{URL: "http://a.example/b", Status: 200}, `{"allowed":false,"rule":"Disallow: /",` + rest +
			`,"status":200}`},
		{"a URL is made canonical", RobotsIn{URL: "HTTP://A.example/b/../a b#x"},
			`{"allowed":true,"rule":"Allow: /a",` + rest + `}`},
		{"robots.txt is always allowed", RobotsIn{URL: "http://a.example/robots.txt"},
			`{"allowed":true,"rule":"",` + rest + `}`},
		{"there is none", RobotsIn{URL: "http://a.example/b", Status: 404},
			`{"allowed":true,"rule":"robots.txt: status 404","crawl_delay":0,"sitemaps":[],"status":404}`},
		{"it cannot be had", RobotsIn{URL: "http://a.example/a", Status: 503},
			`{"allowed":false,"rule":"robots.txt: status 503","crawl_delay":0,"sitemaps":[],"status":503}`},
	} {
		c.in.Robots, c.in.Agent = []byte(file), "kumo"
		if got := asJSON(t, Robots, c.in); got != c.want {
			t.Errorf("%s: got\n%s, want\n%s", c.say, got, c.want)
		}
	}
}

func TestMIME(t *testing.T) {
	for _, c := range []struct {
		in   MIMEIn
		want string
	}{
		{MIMEIn{Value: `Text/HTML; Charset="a b"`}, `{"ok":true,"type":"text/html","parameters":{"charset":"a b"}}`},
		{MIMEIn{Value: "text"}, `{"ok":false,"type":"","parameters":{}}`},
		{MIMEIn{Value: "text/html", Body: []byte("%PDF-1.7")},
			`{"ok":true,"type":"text/html","parameters":{},"sniffed":"application/pdf"}`},
		{MIMEIn{Body: []byte("\x89PNG\r\n\x1a\n")}, `{"ok":false,"type":"","parameters":{},"sniffed":"image/png"}`},
	} {
		if got := asJSON(t, MIME, c.in); got != c.want {
			t.Errorf("%q: got %s, want %s", c.in.Value, got, c.want)
		}
	}
}

// TestLinksOfAHeader: the header fields of a fetched page contain links, too.
func TestLinksOfAHeader(t *testing.T) {
	in := LinksIn{PageIn: PageIn{URL: "http://a.example/",
		Header: http.Header{"Link": {"</next>; rel=next"}, "Content-Type": {"text/html"}, "X-Robots-Tag": {"noindex"}}}}
	out, err := Links(in)
	if err != nil || len(out.Links) != 1 || out.Links[0].URL != "http://a.example/next" || out.XRobotsTag != "noindex" {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestLang(t *testing.T) {
	const want = `{"lang":"other","script":"Thai","confidence":1}`
	if got := asJSON(t, Lang, LangIn{Text: "ห้องสมุดปิดเวลาสามทุ่ม"}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
