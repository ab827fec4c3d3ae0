package batch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"kumo/internal/archive/place"
	"kumo/internal/base/advice"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
)

// versioned serves a page with an ETag that changes with its version, and answers 304 if the client has it.
func versioned(s *site, version *atomic.Int64, links func(version int64) []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := version.Load()
		tag := fmt.Sprintf(`"%d"`, v)
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		s.page(fmt.Sprintf("%s %d", r.URL.Path, v), links(v)...)(w, r)
	}
}

func none(int64) []string { return nil }

func TestTheNextDayFetchesWhatMayHaveChanged(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{})
	var start, steady, moving, rare atomic.Int64
	s.set("a.test/", versioned(s, &start, func(int64) []string {
		return []string{"a.test/steady", "a.test/moving", "a.test/rare", "a.test/plain", "a.test/gone"}
	}))
	s.set("a.test/steady", versioned(s, &steady, none))
	s.set("a.test/moving", versioned(s, &moving, func(v int64) []string {
		if v > 0 {
			return []string{"a.test/new", "a.test/steady"}
		}
		return nil
	}))
	s.set("a.test/rare", versioned(s, &rare, none))
	s.set("a.test/plain", s.page("the same bytes"))
	s.set("a.test/new", s.page("new"))
	s.set("a.test/gone", s.page("here today"))
	c := s.collection("en", "a.test/")
	c.Recrawl = []string{"/rare$=96h", "24h,20h,30d"}
	s.run(t, s.pipeline(day1, 2, c))
	all := []string{"a.test/robots.txt", "a.test/", "a.test/steady", "a.test/moving", "a.test/rare", "a.test/plain",
		"a.test/gone"}
	same(t, "the first day", s.requests(), all)

	s.setDay(day2)
	moving.Add(1)
	s.set("a.test/gone", nil)
	s.run(t, s.pipeline(day2, 3, c))
	same(t, "the second day", s.requests(), []string{"a.test/robots.txt", "a.test/", "a.test/steady", "a.test/moving",
		"a.test/plain", "a.test/gone", "a.test/new"})
	docs := s.documents(t, c, day2)
	for key, want := range map[string]string{"a.test/": "unchanged", "a.test/steady": "unchanged",
		"a.test/moving": "changed",
		"a.test/plain":  "unchanged", "a.test/new": "", "a.test/gone": "gone"} {
		if d := docs[s.url(key)]; d == nil || string(d.Change) != want {
			t.Errorf("%s: found %+v", key, d)
		}
	}
	if d := docs[s.url("a.test/steady")]; !d.Unmodified || d.Status != http.StatusNotModified {
		t.Errorf("the server was not asked conditionally: %+v", d.Status)
	}
	if n := s.wellFormed(t, c, day2); n != 2 {
		t.Errorf("%d pages in the second day's XML: what is new, and what has changed", n)
	}
	if n := s.wellFormed(t, c, day1); n != 6 {
		t.Errorf("%d pages in the first day's XML", n)
	}

	s.setDay("2026-11-25")
	s.run(t, s.pipeline("2026-11-25", 1, c))
	asked := strings.Join(s.requests(), " ")
	if !strings.Contains(asked, "a.test/rare") {
		t.Errorf("what is due after four days was not asked for: %s", asked)
	}
}

func TestADayIsRunOnce(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{})
	s.set("a.test/", s.page("start"))
	c := s.collection("en", "a.test/")
	s.run(t, s.pipeline(day1, 1, c))
	s.requests()
	p := s.pipeline(day1, 1, c)
	resumed := ""
	p.Listener.Resumed = func(_ *collection.Collection, st *batch.State) { resumed = st.Next.Job + "." }
	s.run(t, p)
	if asked := s.requests(); len(asked) > 0 || resumed != "." {
		t.Errorf("a day that was done is run again: %v %q", asked, resumed)
	}
}

func TestTwoRunsOfACollectionKeepOutOfEachOthersWay(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{})
	c := s.collection("en", "a.test/")
	var inner error
	s.set("a.test/", func(w http.ResponseWriter, r *http.Request) {
		inner = s.pipeline(day1, 1, c).Run(context.Background())
		s.page("start")(w, r)
	})
	s.run(t, s.pipeline(day1, 1, c))
	if !errors.Is(inner, place.ErrLocked) || advice.Of(inner) == "" || !strings.Contains(inner.Error(), "collection en") {
		t.Errorf("the second run: %v", inner)
	}
}

func TestAnotherCollectionsDirectoryIsRefused(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{})
	s.set("a.test/", s.page("start"))
	c, other := s.collection("en", "a.test/"), s.collection("de", "a.test/")
	other.Directory = c.Directory
	s.run(t, s.pipeline(day1, 1, c))
	if err := s.pipeline(day1, 1, other).Run(t.Context()); err == nil || !strings.Contains(err.Error(),
		"different directories") {
		t.Errorf("the error is %v", err)
	}
}
