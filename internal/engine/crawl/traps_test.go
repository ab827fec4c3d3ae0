package crawl

import "testing"

// Titles repeat within a domain, whatever numbers they contain.
func TestTitlesRepeat(t *testing.T) {
	var titles titleSet
	for i, c := range []struct {
		domain, title string
		want          bool
	}{
		{"a.test", "March 2031", false},
		{"a.test", "March 2032", true},
		{"a.test", "April 2032", false},
		{"b.test", "March 2031", false},
		{"10.0.0.1", "March 2031", false},
		{"10.0.0.2", "March 2031", false},
		{"a.test", "", false},
		{"a.test", "", true},
	} {
		if got := titles.repeats(c.domain, c.title); got != c.want {
			t.Errorf("%d: %s %q: %v", i, c.domain, c.title, got)
		}
	}
}
