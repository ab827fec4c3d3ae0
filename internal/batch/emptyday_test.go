package batch_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"kumo/internal/base/advice"
	"kumo/internal/batch"
)

func hangUp(w http.ResponseWriter, _ *http.Request) {
	if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
		conn.Close()
	}
}

func (s *site) state(t *testing.T, date string, of *batch.Pipeline) *batch.State {
	t.Helper()
	state, err := batch.ReadState(t.Context(), s.place, of.Collections[0], date)
	if err != nil || state == nil {
		t.Fatalf("the state of %s: %v", date, err)
	}
	return state
}

func TestADayOfADeadLineIsBegunAgain(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{})
	s.set("a.test/", s.page("start", "a.test/1"))
	s.set("a.test/1", s.page("1"))
	s.set("b.test/", s.page("of another collection"))
	en, de := s.collection("en", "a.test/"), s.collection("de", "b.test/")
	s.run(t, s.pipeline(day1, 2, en, de))
	s.requests()

	s.setDay(day2)
	for _, key := range []string{"a.test/robots.txt", "a.test/", "a.test/1"} {
		s.set(key, hangUp)
	}
	p := s.pipeline(day2, 2, en, de)
	p.Fetching.Tries = 1
	err := p.Run(t.Context())
	if !errors.Is(err, batch.ErrNothingFetched) || !strings.Contains(err.Error(), "collection en") ||
		!strings.Contains(err.Error(), s.url("a.test/")) || strings.Contains(err.Error(), "collection de") ||
		advice.Of(err) == "" {
		t.Errorf("the error is %v (%s)", err, advice.Of(err))
	}
	if state := s.state(t, day2, p); state.Nothing == "" || !state.Ended.IsZero() {
		t.Errorf("the day counts as done: %+v", state)
	}
	if docs := s.documents(t, de, day2); len(docs) != 1 {
		t.Errorf("the other collection has %d documents", len(docs))
	}
	s.requests()

	for key, answer := range map[string]http.HandlerFunc{"a.test/robots.txt": nil, "a.test/": s.page("start", "a.test/1"),
		"a.test/1": s.page("1, changed")} {
		s.set(key, answer)
	}
	s.run(t, s.pipeline(day2, 1, en, de))
	same(t, "the day, begun again", s.requests(), []string{"a.test/robots.txt", "a.test/", "a.test/1"})
	docs := s.documents(t, en, day2)
	if d := docs[s.url("a.test/1")]; d == nil || d.Change != "changed" {
		t.Errorf("what was known of the first day is not known any more: %+v", d)
	}
	if d := docs[s.url("a.test/")]; d == nil || d.Change != "unchanged" {
		t.Errorf("what was known of the first day is not known any more: %+v", d)
	}
}

func TestADayWhoseSeedsAreRefusedSaysSo(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{"a.test/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "User-agent: *\nDisallow: /\n")
	}, "b.test/": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }})
	c := s.collection("en", "a.test/", "b.test/", "c.test/x")
	c.Exclude = []string{"/x"}
	err := s.pipeline(day1, 1, c).Run(t.Context())
	if !errors.Is(err, batch.ErrNothingFetched) {
		t.Fatalf("the error is %v", err)
	}
	for _, want := range []string{"excluded by the rule robots: Disallow: /", "(status 403)", "rule exclude"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

// If a damaged state of a day was removed, the day is run again, here with fewer partitions.
func TestADayThatIsRunAgainReplacesWhatItHad(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{})
	var links []string
	for i := range 20 {
		key := fmt.Sprintf("a.test/%d", i)
		links = append(links, key)
		s.set(key, s.page(key))
	}
	s.set("a.test/", s.page("start", links...))
	c := s.collection("en", "a.test/")
	s.run(t, s.pipeline(day1, 5, c))
	if err := s.place.Remove(t.Context(), c.Directory+"/state/"+day1+".json"); err != nil {
		t.Fatal(err)
	}
	s.set("a.test/", s.page("start", links[:10]...))
	s.run(t, s.pipeline(day1, 2, c))
	if n := len(s.documents(t, c, day1)); n != 11 {
		t.Errorf("%d documents, not 11", n)
	}
	if n := s.wellFormed(t, c, day1); n != 11 {
		t.Errorf("%d pages in XML, not 11", n)
	}
}
