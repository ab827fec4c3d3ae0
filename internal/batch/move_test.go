package batch_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"kumo/internal/batch"
	"kumo/internal/batch/collection"
)

// A site that has moved is crawled at its new address: links on the new host are in scope as for a seed, on the day
// that finds the redirect and later.
func TestASeedThatRedirectsBringsItsTargetIntoScope(t *testing.T) {
	for _, reducers := range []int{1, 3} {
		t.Run(fmt.Sprint(reducers, " reducers"), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, map[string]http.HandlerFunc{})
			s.set("old.test/", s.redirect("gate.test/"))
			s.set("gate.test/", s.redirect("www.new.test/start"))
			s.set("www.new.test/start", s.page("start", "www.new.test/1", "other.test/", "old.test/x"))
			s.set("www.new.test/1", s.page("1", "www.new.test/2", "img.new.test/"))
			s.set("www.new.test/2", s.page("2"))
			s.set("old.test/x", s.redirect("ad.test/")) // not a seed: its redirect target stays out of scope
			c := s.collection("en", "old.test/")
			c.Scope = "host"
			p := s.pipeline(day1, reducers, c)
			var moves []string
			p.Listener.Moved = func(_ *collection.Collection, m *batch.Move) { moves = append(moves, m.URL+" "+m.To) }
			s.run(t, p)
			all := []string{"old.test/robots.txt", "old.test/", "gate.test/robots.txt", "gate.test/",
				"www.new.test/robots.txt", "www.new.test/start", "www.new.test/1", "www.new.test/2", "old.test/x"}
			same(t, "the first day", s.requests(), all)
			slices.Sort(moves)
			same(t, "moves", moves, []string{s.url("old.test/") + " " + s.url("gate.test/"),
				s.url("gate.test/") + " " + s.url("www.new.test/start")})

			s.setDay(day2)
			s.run(t, s.pipeline(day2, reducers, c))
			same(t, "the second day", s.requests(), all)
			for url, d := range s.documents(t, c, day2) {
				if d.Rule != "" && !strings.Contains(url, "ad.test") {
					t.Errorf("%s is left out on the second day: %s", url, d.Rule)
				}
			}

			s.setDay("2026-11-23") // the site is back
			s.set("old.test/", s.page("we are back", "old.test/y", "www.new.test/3"))
			s.run(t, s.pipeline("2026-11-23", reducers, c))
			asked := strings.Join(s.requests(), " ")
			if !strings.Contains(asked, "old.test/y") || strings.Contains(asked, "www.new.test/3") {
				t.Errorf("the day after the redirect went: %s", asked)
			}
			if moved := s.state(t, "2026-11-23", p).Moved; moved[s.url("old.test/")] != "" {
				t.Errorf("it still counts as moved: %v", moved)
			}
		})
	}
}

func TestASeedThatWasTakenOutTakesItsTargetAlong(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{})
	s.set("a.test/", s.redirect("b.test/"))
	s.set("b.test/", s.page("b"))
	s.set("c.test/", s.page("c"))
	c := s.collection("en", "a.test/", "c.test/")
	c.Scope = "host"
	s.run(t, s.pipeline(day1, 1, c))
	s.requests()
	s.setDay(day2)
	c.Seeds = c.Seeds[1:]
	s.run(t, s.pipeline(day2, 1, c))
	same(t, "requests", s.requests(), []string{"c.test/robots.txt", "c.test/"})
}
