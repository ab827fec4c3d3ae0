package maintext

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"kumo/internal/lab/sitepages"
)

// f1 returns the harmonic mean of precision and recall of got.
func f1(got, want string) float64 { return sitepages.ScoreOf(got, want, "").F1 }

// A tally is the mean over some pages.
type tally struct {
	pages, headline, published, author int
	f1, worst                          float64
}

func (c *tally) add(s sample, got Text, score float64) {
	if c.pages == 0 || score < c.worst {
		c.worst = score
	}
	c.pages++
	c.f1 += score
	c.headline += one(got.Headline == s.want.Headline)
	c.published += one(len(got.Published) >= 10 && got.Published[:10] == s.want.Published)
	c.author += one(got.Author == s.want.Author)
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (c *tally) mean() float64 { return c.f1 / float64(c.pages) }

func (c *tally) String() string {
	percent := func(n int) float64 { return 100 * float64(n) / float64(c.pages) }
	return fmt.Sprintf("%4d pages  F1 %.3f  worst %.3f  headline %3.0f %%  date %3.0f %%  author %3.0f %%",
		c.pages, c.mean(), c.worst, percent(c.headline), percent(c.published), percent(c.author))
}

// TestQuality reads pages of every template in every script, and compares the means with minimum values.
func TestQuality(t *testing.T) {
	const floor = 0.90
	by := map[string]*tally{}
	seed := uint64(20260101)
	for _, w := range loadTongues(t) {
		for _, tpl := range templates {
			for range samples {
				seed++
				s := makeSample(w, tpl, seed)
				got, err := Extract([]byte(s.html), s.url)
				if err != nil {
					t.Logf("%s %s, seed %d: %v", tpl.kind, w.lang, seed, err)
				}
				score := f1(got.Text, s.want.Text)
				if score < 0.8 {
					t.Logf("%s %s, seed %d: F1 %.3f\n got %q\nwant %q", tpl.kind, w.lang, seed, score, got.Text, s.want.Text)
				}
				for _, key := range []string{"all", "page " + tpl.kind, "script " + w.script} {
					if by[key] == nil {
						by[key] = &tally{}
					}
					by[key].add(s, got, score)
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(by)) {
		t.Logf("%-12s %s", key, by[key])
		if by[key].mean() < floor {
			t.Errorf("%s: F1 %.3f is below %.2f", key, by[key].mean(), floor)
		}
	}
}
