package crawl

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
)

// hookEngine returns an engine with one host and no disk.
func hookEngine(t *testing.T, h Hooks) *Engine {
	s, err := recovery.Recover(journal.Discard, recovery.Views{Seen: seen.New(), Digests: seen.NewRecent(),
		Frontier: frontier.New(frontier.Config{})})
	if err != nil {
		t.Fatal(err)
	}
	e := New(Config{Depth: -1}, Parts{Journal: journal.Discard, Robots: robots.NewCache(robots.Config{}),
		Scope: weburl.NewScope(weburl.ScopeHost), Hooks: h}, s)
	u, err := weburl.Parse("http://a.test/")
	if err != nil {
		t.Fatal(err)
	}
	e.Inspector.rules.Scope.AddSeed(u)
	return e
}

// Edited links are judged like others; vetoed ones are filtered, once.
func TestEditedLinksAreJudged(t *testing.T) {
	edits := map[string]LinkEdit{
		"http://a.test/same":     {URL: "http://a.test/same", Lift: 7},
		"http://a.test/veto":     {URL: "http://a.test/veto", Veto: "not this"},
		"http://a.test/moved":    {URL: "to#part"},
		"http://a.test/away":     {URL: "http://b.test/"},
		"http://a.test/mail":     {URL: "mailto:a@a.test"},
		"http://a.test/more":     {URL: "http://a.test/more", More: []string{"more/2", "mailto:b@a.test", "http://b.test/"}},
		"http://a.test/vetomore": {Veto: "but another", More: []string{"/another"}},
	}
	e := hookEngine(t, Hooks{Link: func(from *item.Item, links []page.Link, made []LinkEdit) error {
		if from.URL != "http://a.test/dir/" {
			t.Errorf("a link of %s", from.URL)
		}
		for i := range links {
			made[i] = edits[links[i].URL]
		}
		return nil
	}})
	var pg page.Page
	for url := range edits {
		pg.Links = append(pg.Links, page.Link{URL: url, Kind: page.Anchor})
	}
	var b batch
	if err := e.abandons.admission.addLinks(&b, &item.Item{URL: "http://a.test/dir/"}, &pg); err != nil {
		t.Fatal(err)
	}
	if err := e.abandons.commitBatch(&b, nil); err != nil {
		t.Fatal(err)
	}
	var found, left []string
	for _, c := range b.found {
		if c.Item.URL == "http://a.test/same" && c.Item.Lift != 7 {
			t.Errorf("lifted by %d, want 7", c.Item.Lift)
		}
		found = append(found, strings.TrimPrefix(c.Item.URL, "http://a.test/"))
	}
	for _, s := range b.skips {
		left = append(left, strings.TrimPrefix(s.URL, "http://a.test/")+" "+s.Rule+" "+s.Why)
	}
	slices.Sort(found)
	slices.Sort(left)
	if want := []string{"another", "dir/more/2", "dir/to", "more", "same"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	want := []string{"mail vetoed changed to an invalid URL: not http or https", "veto vetoed not this",
		"vetomore vetoed but another"}
	if !slices.Equal(left, want) {
		t.Errorf("left out %q, want %q", left, want)
	}
	if offs := b.offs; len(offs) != 2 || offs[0] != "b.test" {
		t.Errorf("off the crawl's hosts: %q", offs)
	}
}

// Without a hook, a known link costs no allocation.
func TestLinksWithoutAHookAllocateNothing(t *testing.T) {
	e := hookEngine(t, Hooks{})
	it := item.Item{URL: "http://a.test/"}
	allocs := map[int]float64{}
	for _, links := range []int{10, 1000} {
		var pg page.Page
		for i := range links {
			pg.Links = append(pg.Links, page.Link{URL: fmt.Sprintf("http://a.test/%d", i), Kind: page.Anchor})
		}
		var b batch
		allocs[links] = testing.AllocsPerRun(10, func() {
			b.reset()
			if err := e.abandons.admission.addLinks(&b, &it, &pg); err != nil {
				t.Fatal(err)
			}
			if err := e.abandons.commitBatch(&b, nil); err != nil {
				t.Fatal(err)
			}
		})
	}
	if allocs[1000] > allocs[10] {
		t.Errorf("%v allocations for 10 links, %v for 1000", allocs[10], allocs[1000])
	}
}
