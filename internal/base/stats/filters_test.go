package stats

import (
	"strings"
	"testing"
)

func TestFilterCounts(t *testing.T) {
	c := FilterCounts{Filter: "./p", Points: map[string]*FilterPoint{"link": {Asked: 3, Dropped: 1}}, Crashed: 1}
	if c.Summary() != "3 links asked, 1 dropped" {
		t.Error(c.Summary())
	}
	before := c.Clone()
	c.Add(FilterCounts{Points: map[string]*FilterPoint{"link": {Asked: 1, Unanswered: 1}, "record": {Asked: 1, Changed: 1},
		"x": nil},
		Late: 2, Trouble: "late"})
	if got := c.Summary(); got != "4 links asked, 1 dropped, 1 without an answer; 1 record asked, 1 changed" {
		t.Error(got)
	}
	if before.Summary() != "3 links asked, 1 dropped" {
		t.Error("a copy has changed with what it was made of")
	}
	var b strings.Builder
	(&Report{Filters: []FilterCounts{c, {Filter: "./q"}}}).PrintCounts(&b)
	for _, want := range []string{"filter    ./p: 4 links asked", "restarted 3 times: late",
		"filter    ./q: nothing asked"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}
