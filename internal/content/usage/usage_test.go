package usage_test

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"kumo/internal/base/page"
	"kumo/internal/content/parse"
	"kumo/internal/content/robots"
	"kumo/internal/content/usage"
)

// of returns the usage of https://example.com/dir/page.html as a crawl by "kumo" reads it.
func of(t testing.TB, robotsTxt, tdmRep, header, body string) *page.Usage {
	t.Helper()
	h := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	for line := range strings.Lines(header) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		h.Add(name, value)
	}
	resp := &page.Response{URL: "https://example.com/dir/page.html", Status: http.StatusOK, Header: h, Body: []byte(body)}
	pg := &page.Page{}
	if err := parse.New(parse.Config{Agent: "kumo"}).Parse(resp, pg); err != nil {
		t.Fatal(err)
	}
	var rule *usage.TDMRule
	if rep, err := usage.ParseTDMRep([]byte(tdmRep)); err == nil {
		rule = rep.Match("/dir/page.html")
	}
	return usage.Of(robots.Parse([]byte(robotsTxt), "kumo").Usage("/dir/page.html"), rule, resp, pg)
}

func TestOf(t *testing.T) {
	for name, test := range map[string]struct {
		robots, tdmRep, header, body string
		want                         *page.Usage
	}{
		"nothing": {robots: "User-agent: *\nAllow: /\n", header: "X-Robots-Tag: noindex", body: "<meta name=robots content=none>"},
		"Content-Usage": {header: "Content-Usage: train-ai=n, search=y;x=1, other=y",
			want: &page.Usage{Uses: page.Uses{TrainAI: "n", Search: "y"}, Source: "header",
				Raw: "Content-Usage: train-ai=n, search=y;x=1, other=y"}},
		"Content-Usage in two fields": {header: "Content-Usage: train-ai=n\nContent-Usage: search=y",
			want: &page.Usage{Uses: page.Uses{TrainAI: "n", Search: "y"}, Source: "header",
				Raw: "Content-Usage: train-ai=n, search=y"}},
		"labels are case-sensitive, values are tokens": {header: `Content-Usage: Train-AI=n`,
			want: &page.Usage{Source: "header", Raw: "Content-Usage: Train-AI=n"}},
		"a string is no token": {header: `Content-Usage: train-ai="n", search=Y`,
			want: &page.Usage{Source: "header", Raw: `Content-Usage: train-ai="n", search=Y`}},
		"not a dictionary: nothing is stated": {header: "Content-Usage: train-ai=n, ;;",
			want: &page.Usage{Source: "header", Raw: "Content-Usage: train-ai=n, ;;"}},
		"robots.txt": {robots: "User-agent: *\nContent-Usage: train-ai=y\nContent-Usage: /dir/ train-ai=n\n",
			want: &page.Usage{Uses: page.Uses{TrainAI: "n"}, Source: "robots.txt:3",
				Raw: "Content-Usage: /dir/ train-ai=n"}},
		"signals before any group": {robots: "Content-Signal: search=yes, AI-Train=no,ai-input=NO,use=reference\n" +
			"User-agent: kumo\nAllow: /\n",
			want: &page.Usage{Uses: page.Uses{TrainAI: "n", Search: "y", AIInput: "n"}, Source: "robots.txt:1",
				Raw: "Content-Signal: search=yes, AI-Train=no,ai-input=NO,use=reference"}},
		"signals of another agent": {robots: "User-agent: other\nContent-Signal: ai-train=no\n"},
		"n wins": {robots: "User-agent: *\nContent-Signal: ai-train=no\n", header: "Content-Usage: train-ai=y, search=y",
			want: &page.Usage{Uses: page.Uses{TrainAI: "n", Search: "y"}, Source: "robots.txt:2 header",
				Raw: "Content-Signal: ai-train=no; Content-Usage: train-ai=y, search=y"}},
		"TDMRep header": {header: "TDM-Reservation: 1\nTDM-Policy: https://example.com/policy.json",
			want: &page.Usage{Uses: page.Uses{TDM: "n"}, Policy: "https://example.com/policy.json", Source: "header",
				Raw: "tdm-reservation: 1, tdm-policy: https://example.com/policy.json"}},
		"a meta element replaces a header field": {header: "TDM-Reservation: 1",
			body: `<meta name="TDM-reservation" content="0">`,
			want: &page.Usage{Uses: page.Uses{TDM: "y"}, Source: "header meta",
				Raw: "tdm-reservation: 1; meta tdm-reservation: 0"}},
		"absence resets nothing": {tdmRep: `[{"location": "/x"}, {"location": "/dir/*.html$", "tdm-reservation": 1}]`,
			body: `<meta name=tdm-policy content=/p.json>`,
			want: &page.Usage{Uses: page.Uses{TDM: "n"}, Policy: "/p.json", Source: "tdmrep.json:2 meta",
				Raw: "tdm-reservation: 1; meta tdm-policy: /p.json"}},
		"the first rule counts": {tdmRep: `[{"location": "/dir", "tdm-reservation": "0"}, {"location": "*", "tdm-reservation": 1}]`,
			want: &page.Usage{Uses: page.Uses{TDM: "y"}, Source: "tdmrep.json:1", Raw: "tdm-reservation: 0"}},
		"an invalid reservation states nothing": {header: "TDM-Reservation: yes",
			want: &page.Usage{Source: "header", Raw: "tdm-reservation: yes"}},
		"noai": {body: `<meta name="robots" content="index, noai, noimageai">`,
			want: &page.Usage{Uses: page.Uses{TrainAI: "n"}, Source: "meta", Raw: "meta robots: index, noai, noimageai"}},
		"noimageai is about images": {header: "X-Robots-Tag: noimageai",
			want: &page.Usage{Source: "header", Raw: "X-Robots-Tag: noimageai"}},
		"noai of another agent": {header: "X-Robots-Tag: otherbot: noai"},
		"licenses": {robots: "License: https://example.com/rsl.xml\n", header: "Link: </license>; rel=license",
			body: `<link rel="License" href="/l.xml"><a rel=license href=/cc>`,
			want: &page.Usage{License: "https://example.com/rsl.xml", Source: "robots.txt:1 header link",
				Raw: "License: https://example.com/rsl.xml; Link license: https://example.com/license; " +
					"link license: https://example.com/l.xml"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, of(t, test.robots, test.tdmRep, test.header, test.body)); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoImageAIOfImage(t *testing.T) {
	resp := &page.Response{Header: http.Header{"X-Robots-Tag": {"noimageai"}}}
	pg := &page.Page{Sniffed: "image/png", Robots: page.Robots{NoImageAI: page.InHeader}}
	if u := usage.Of(nil, nil, resp, pg); u == nil || u.TrainAI != "n" {
		t.Errorf("usage %+v", u)
	}
}

func TestParseTDMRep(t *testing.T) {
	for _, bad := range []string{"", "<html>", `{"location": "/"}`, `[{"location": 1}]`} {
		if _, err := usage.ParseTDMRep([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
	rep, err := usage.ParseTDMRep([]byte("[" + strings.Repeat(`{"location": "/a$"},`, 100_000) + `{"location": "*"}]`))
	if err != nil {
		t.Fatal(err)
	}
	if r := rep.Match("/b"); r != nil {
		t.Errorf("rule %d is beyond the limit", r.Number)
	}
}

func TestRawIsBounded(t *testing.T) {
	u := of(t, "", "", "Content-Usage: "+strings.Repeat("é, ", 10_000), "")
	if len(u.Raw) > 1<<10 || !utf8.ValidString(u.Raw) {
		t.Errorf("raw has %d bytes, valid %v", len(u.Raw), utf8.ValidString(u.Raw))
	}
}

func TestOfAllocatesNothing(t *testing.T) {
	resp := &page.Response{Header: http.Header{"Content-Type": {"text/html"}, "X-Robots-Tag": {"noindex"}}}
	pg := &page.Page{Links: []page.Link{{URL: "https://example.com/", Kind: page.Alternate, Rel: "alternate feed"}}}
	if n := testing.AllocsPerRun(100, func() { usage.Of(nil, nil, resp, pg) }); n != 0 {
		t.Errorf("%v allocations for a page without statements", n)
	}
}

func FuzzOf(f *testing.F) {
	f.Add("Content-Signal: ai-train=no\nUser-agent: *\nContent-Usage: /d* train-ai=n\n",
		`[{"location": "*", "tdm-reservation": 1, "tdm-policy": "/p"}]`, "train-ai=n;a=?1, b=(c d)", "noai")
	f.Add("License: \x00\xff", "[null]", "=", "tdm")
	f.Fuzz(func(t *testing.T, robotsTxt, tdmRep, field, body string) {
		if strings.ContainsAny(field, "\r\n") {
			t.Skip("not a field value")
		}
		header := "Content-Usage: " + field + "\nContent-Signal: " + field + "\nX-Robots-Tag: " + field +
			"\nTDM-Reservation: " + field + "\nTDM-Policy: " + field + "\nLink: " + field
		u := of(t, robotsTxt, tdmRep, header, body)
		if u == nil {
			return
		}
		for _, value := range []string{u.TrainAI, u.Search, u.AIInput, u.TDM} {
			if value != "" && value != "y" && value != "n" {
				t.Errorf("value %q", value)
			}
		}
		for _, text := range []string{u.Raw, u.Source, u.Policy, u.License} {
			if !utf8.ValidString(text) || len(text) > 4<<10 || strings.ContainsAny(text, "\r\n\x00") {
				t.Errorf("text %q", text)
			}
		}
		if u.Raw == "" || u.Source == "" {
			t.Errorf("no origin: %+v", u)
		}
	})
}
