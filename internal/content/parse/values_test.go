package parse

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

// Each case is [] for no refresh, or the delay in seconds and the URL; "__filename__" is the page itself.
func TestRefreshStandard(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testdata(t), "html", "meta-refresh.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Input    string
		Expected []any
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	base, err := weburl.Parse("http://h.test/__filename__")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		seconds, ref, ok := parseRefresh([]byte(c.Input))
		if ok != (len(c.Expected) > 0) {
			t.Errorf("%q: got %v", c.Input, ok)
			continue
		}
		if !ok {
			continue
		}
		got, _ := base.Resolve(string(ref))
		want, _ := base.Resolve(c.Expected[1].(string))
		if float64(seconds) != c.Expected[0] || got != want {
			t.Errorf("%q: got %d, %s", c.Input, seconds, got)
		}
	}
}

func TestRefreshBounds(t *testing.T) {
	seconds, _, ok := parseRefresh([]byte(strings.Repeat("9", 100)))
	if !ok || seconds != 1<<31-1 {
		t.Errorf("got %d, %v", seconds, ok)
	}
}

func TestSrcset(t *testing.T) {
	for in, want := range map[string]string{
		"a":                              "a",
		" , a 1x ,\tb 2x":                "a b",
		"a,b":                            "a,b",
		"a, b":                           "a b",
		"a,,, b":                         "a b",
		"data:,a 1x, b":                  "data:,a b",
		"a 100w, b 0w, c 1.5w, d -1w":    "a",
		"a 1x 2x, b 1w 1x, c 1w 1w":      "",
		"a 1h, b 1w 1h, c 1h 1h, d 1x1h": "b",
		"a 1.5x, b -1x, c 1e3x, d +1x, e .5x, f 1.x, g 0x, h infx, i 0x1x": "a c e g",
		"a (x, y 1x) 1x, b": "b",
		"a (, b":            "",
		"a 1x b 2x, c":      "c",
		"a x, b w":          "",
	} {
		var got []string
		for _, c := range ParseSrcset(in) {
			got = append(got, c.URL)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %s", in, got, want)
		}
	}
}

func TestParsed(t *testing.T) {
	delay, url, ok := ParseRefresh("5; url='/x'")
	if delay != 5 || url != "/x" || !ok {
		t.Errorf("got %d, %s, %v", delay, url, ok)
	}
	if _, _, ok := ParseRefresh("x"); ok {
		t.Error("nonsense is a refresh")
	}
	want := []Candidate{{"a.png", ""}, {"b.png", "2x"}, {"c.png", "100w 50h"}}
	if diff := cmp.Diff(want, ParseSrcset("a.png, b.png 2x , c.png\t100w  50h, d.png no")); diff != "" {
		t.Error(diff)
	}
}

func TestRelKind(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "-",
		" ":                          "-",
		"next":                       "link",
		" next\tnofollow ":           "link",
		"CANONICAL":                  "canonical",
		"canonical stylesheet":       "style",
		"icon alternate":             "resource",
		"preconnect":                 "-",
		"preconnect stylesheet":      "style",
		"apple-touch-startup-image":  "resource",
		"apple-touch":                "link",
		strings.Repeat("long ", 999): "link",
	} {
		got := "-"
		if kind, ok := relKind([]byte(in), page.Alternate); ok {
			got = kind.String()
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestMediaType(t *testing.T) {
	for in, want := range map[string]string{
		"text/html":                     "text/html",
		" Text/HTML ; charset=x":        "text/html",
		"text/html, text/plain":         "text/html",
		"html":                          "",
		"text/":                         "",
		"/html":                         "",
		"text html/x":                   "",
		"":                              "",
		"application/xhtml+xml;q=\";\"": "application/xhtml+xml",
	} {
		if got := MediaType(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if !Readable("text/html") || !Readable("application/xhtml+xml") || !Readable("") || Readable("image/png") ||
		!Readable("text/plain") || !Readable("application/rss+xml") {
		t.Error("Readable is wrong")
	}
}
