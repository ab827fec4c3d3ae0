package fields

import (
	"fmt"
	"testing"

	"kumo/internal/base/stats"
)

// TestChange simulates sites that change, and fields that are always rare.
func TestChange(t *testing.T) {
	for _, c := range []struct {
		name         string
		every        int // number of pages with the field
		pages, after int // number of pages without it after that
		want         bool
	}{
		{"always there, then gone", 1, 50, 5, true},
		{"there on few pages, then gone", 1, 5, 5, true},
		{"there once", 1, 1, 50, false},
		{"not yet long enough", 1, 50, 4, false},
		{"rare", 10, 100, 20, false},
		{"rare, and gone", 10, 100, 80, true},
		{"never there", 1000, 0, 50, false},
		{"there", 1, 50, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tally := NewTally()
			for i := range c.pages + c.after {
				f := FieldResult{Path: "price", Missed: 1}
				if i < c.pages && i%c.every == 0 {
					f.Found, f.Missed = 1, 0
				}
				if i == c.pages/2 { // another run continues the counts
					before := tally.Counts()
					tally = NewTally()
					tally.Restore(before)
				}
				tally.Add("a", &Result{Rules: []RuleResult{{Rule: "r", Records: f.Found, Fields: []FieldResult{f}}}})
			}
			got := tally.Counts()
			if len(got) != 1 || got[0].Pages != int64(c.pages+c.after) || got[0].Fields[0].Changed != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestTallyBound counts pages of more hosts than the limit.
func TestTallyBound(t *testing.T) {
	tally := NewTally()
	for i := range 3 * maxHosts {
		tally.Add(fmt.Sprint("host", i), &Result{Rules: []RuleResult{{Rule: "r"}}})
	}
	counts := tally.Counts()
	if len(counts) > maxHosts+1 || counts[0].Host != stats.OtherHosts || counts[0].Pages != 2*maxHosts {
		t.Errorf("%d hosts, the first %+v", len(counts), counts[0])
	}
}
