package robots

import (
	"reflect"
	"testing"
)

func TestDecideNamesTheLine(t *testing.T) {
	const body = "# hello\r\nUser-agent: other\r\nDisallow: /\r\n\r\nUser-agent: kumo\nDisallow: /private/ # not " +
		"you\rAllow: /dir/index.html\nDisallow: /dir\n"
	rules := Parse([]byte(body), "kumo")
	for path, want := range map[string]Line{
		"/private/x":      {6, "Disallow: /private/"},
		"/dir/index.html": {7, "Allow: /dir/index.html"},
		"/dir/":           {7, "Allow: /dir/index.html"},
		"/dir/x":          {8, "Disallow: /dir"},
		"/":               {},
		"/robots.txt":     {},
	} {
		for how, r := range map[string]*Rules{"parsed": rules, "kept": FromLines(rules.Lines())} {
			if ok, by := r.Decide(path); by != want || ok != (want.Number == 0 || want.Number == 7) {
				t.Errorf("%s, %s: %v by %v, want %v", how, path, ok, by, want)
			}
		}
	}
}

func TestLinesAreInTheFilesOrder(t *testing.T) {
	rules := Parse([]byte("User-agent: *\nDisallow: /a\nAllow: /abc/index.html\n\nDisallow: /ab\n"), "kumo")
	want := []Line{{2, "Disallow: /a"}, {3, "Allow: /abc/index.html"}, {5, "Disallow: /ab"}}
	if got := rules.Lines(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if ok, by := DisallowAll("robots.txt: status 503").Decide("/x"); ok || by != (Line{0, "robots.txt: status 503"}) {
		t.Errorf("got %v %v", ok, by)
	}
}
