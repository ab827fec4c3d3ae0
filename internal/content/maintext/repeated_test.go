package maintext

import (
	"strings"
	"testing"

	"kumo/internal/lab/sitepages"
)

// TestRepeatedLines measures what a site's other pages could add: it removes the lines that half of the pages of a
// template have, and compares F1 by kind. A gain that is worth a table for each host would be a reason to reconsider
// docs/decisions/maintext.md.
func TestRepeatedLines(t *testing.T) {
	const each = 20
	pages := sitepages.Pages(99, each)
	texts := make([]string, len(pages))
	onPages := map[string]int{} // by template and line
	key := func(p *sitepages.Page, line string) string { return p.Program + "." + p.Kind + "\n" + line }
	for i := range pages {
		got, err := Extract([]byte(pages[i].HTML), pages[i].URL)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = got.Text
		seen := map[string]bool{}
		for line := range strings.SplitSeq(got.Text, "\n") {
			if !seen[line] {
				seen[line] = true
				onPages[key(&pages[i], line)]++
			}
		}
	}
	for _, least := range []int{letter, sentence} { // weight of the removed lines
		before, after, number := map[string]float64{}, map[string]float64{}, map[string]float64{}
		removed, wrong := 0, 0
		for i := range pages {
			p := &pages[i]
			var kept []string
			for line := range strings.SplitSeq(texts[i], "\n") {
				if 2*onPages[key(p, line)] < each || weigh(line) < least {
					kept = append(kept, line)
					continue
				}
				removed++
				wrong += one(strings.Contains(p.Text, line))
			}
			number[p.Kind]++
			before[p.Kind] += sitepages.ScoreOf(texts[i], p.Text, p.Optional).F1
			after[p.Kind] += sitepages.ScoreOf(strings.Join(kept, "\n"), p.Text, p.Optional).F1
		}
		t.Logf("lines of weight %d: %d removed, %d of them from main texts", least, removed, wrong)
		gain := 0.0
		for _, kind := range sitepages.Kinds {
			t.Logf("%-13s F1 %.4f, without repeated lines %.4f", kind, before[kind]/number[kind], after[kind]/number[kind])
			gain += (after[kind] - before[kind]) / float64(len(pages))
		}
		t.Logf("all: %+.4f", gain)
		if gain > 0.005 {
			t.Errorf("without repeated lines, F1 is %.4f higher", gain)
		}
	}
}
