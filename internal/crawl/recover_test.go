package crawl

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"kumo/internal/frontier"
	"kumo/internal/journal"
	"kumo/internal/journal/memory"
	"kumo/internal/page"
	"kumo/internal/seen"
	"kumo/internal/stats"
	"kumo/internal/vfs"
)

// A merge decided about a URL, which was fetched then; before the merge was durable a checkpoint of the frontier was. That of seen is
// older, and offers the URL again: it is done all the same.
func TestWhatAMergeHasDecidedIsNotFetchedAgain(t *testing.T) {
	c := candidate{host: "a", item: frontier.Item{URL: "http://a/", Kind: page.Anchor}}
	var payload, met, decided encoder
	payload.candidate(&c, "")
	met.later(payload.b)
	decided.found("a", &c.item)
	decided.done(&done{url: "http://a/", visit: stats.Visit{Host: "a", Status: 200}})
	for name, end := range map[string]func(log journal.Journal) []byte{
		"done before the frontier's checkpoint": func(log journal.Journal) []byte { return noteAt(t, log.End()) },
		"done after it":                         func(journal.Journal) []byte { return nil },
	} {
		log := memory.New()
		if err := errors.Join(log.Append(met.b), log.Append(decided.b)); err != nil {
			t.Fatal(err)
		}
		db, err := seen.Open(vfs.OS, t.TempDir(), seen.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Recover(log, Views{Seen: db, Digests: seen.NewRecent(), Frontier: frontier.New(frontier.Config{}), Note: end(log)})
		if err != nil {
			t.Fatal(err)
		}
		if s.Waiting() != 0 {
			t.Errorf("%s: it waits again", name)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func noteAt(t *testing.T, at journal.Position) []byte {
	t.Helper()
	text, err := json.Marshal(note{Version: noteVersion, Position: at})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestVersionsOfTheNote: the first version, which had in itself what was given up, is read; one to come is refused.
func TestVersionsOfTheNote(t *testing.T) {
	const url = "http://a.test/"
	for text, want := range map[string]int{
		`{"Version":1,"Stats":{"Pages":3,"Hosts":{"a.test":{"Pages":3,"Bytes":7,"Failures":1,"Time":5},"b.test":{"Failures":2}}},
			"Shelf":[{"Host":"a.test","Item":{"URL":"` + url + `","Told":true}}]}`: 1,
		`{"Version":3}`: -1,
	} {
		s, err := Recover(memory.New(), Views{Seen: seen.New(), Digests: seen.NewRecent(), Frontier: frontier.New(frontier.Config{}),
			Shelf: OpenShelf(vfs.OS, t.TempDir()), Note: []byte(text)})
		switch {
		case want < 0 && (err == nil || !strings.Contains(err.Error(), "another kumo wrote it")):
			t.Errorf("a version to come: %v", err)
		case want < 0:
		case err != nil:
			t.Error(err)
		case s.Waiting() != want || s.waiting[url].host != "a.test":
			t.Errorf("%d URLs wait, want %d", s.Waiting(), want)
		default:
			if n, known := s.Stats.HostPages("a.test"); n != 3 || !known {
				t.Errorf("%d pages, %v", n, known)
			}
		}
	}
}
