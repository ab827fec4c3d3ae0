package lookup_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kumo/internal/app/lookup"
	"kumo/internal/base/vfs"
)

// All records of a day are found, however old, and in whatever order the requests ended; older ones are not scanned.
func TestRecordsOfADay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begin := time.Date(2026, 11, 19, 22, 0, 0, 0, time.UTC)
	var b strings.Builder
	want := map[string]int{}
	const lines = 40_000
	for i := range lines {
		at := begin.Add(time.Duration(i)*6*time.Second - time.Duration(i%7)*5*time.Minute) // up to half an hour late
		lang := []string{"en", "de", "en-GB"}[i%3]
		fmt.Fprintf(&b, `{"url":"http://a.example/%d","status":200,"time":"%s","lang":"%s","title":"%s"}`+"\n", i,
			at.Format(time.RFC3339Nano), lang,
			strings.Repeat("x", 60))
		want[at.Format(time.DateOnly)]++
		want[at.Format("2006-01")]++
		if lang != "de" {
			want["en "+at.Format(time.DateOnly)]++
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "pages.jsonl"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	a := lookup.New(vfs.OS, dir, nil)
	for _, day := range []string{"2026-11-19", "2026-11-20", "2026-11-21", "2026-11-22", "2026-11", "2026-12-01",
		"2025-01-01", "2026-11-31"} {
		if got := len(everything(t, a, lookup.Filter{Day: day}, 300)); got != want[day] {
			t.Errorf("%s has %d records, want %d", day, got, want[day])
		}
		if got := len(everything(t, a, lookup.Filter{Day: day, Lang: "EN"}, 300)); len(day) == 10 && got != want["en "+day] {
			t.Errorf("%s has %d records in English, want %d", day, got, want["en "+day])
		}
	}
	if some, next, err := a.List(t.Context(), lookup.Filter{Day: "2026-11-19"}, lookup.Last,
		lines); len(some) != want["2026-11-19"] || next != 0 || err != nil {
		t.Errorf("the first day at once: %d records, %d, %v", len(some), next, err)
	}
	if got := len(everything(t, a, lookup.Filter{Day: "2026-11-22", Prefix: "a.example/39"}, 300)); got == 0 {
		t.Error("a day and a prefix together find nothing")
	}
	if some, next, err := a.List(t.Context(), lookup.Filter{Day: "2026-11-19", Prefix: "b.example/"}, lookup.Last,
		10); len(some) != 0 || next != 0 || err != nil {
		t.Errorf("a host that is not there goes on behind its day: %d records, %d, %v", len(some), next, err)
	}
	// Records restored by a repair are after newer ones.
	again := strings.Join(strings.SplitAfter(b.String(), "\n")[:2000], "")
	if err := os.WriteFile(filepath.Join(dir, "pages.jsonl"), []byte(b.String()+again), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := len(everything(t, a, lookup.Filter{Day: "2026-11-22"}, 300)); got != want["2026-11-22"] {
		t.Errorf("behind a repair the last day has %d records, want %d", got, want["2026-11-22"])
	}
	for _, day := range []string{"yesterday", "2026", "2026-13-01", "2026-11-21T00"} {
		f := lookup.Filter{Day: day}
		if _, _, err := a.List(t.Context(), f, lookup.Last, 1); err == nil || f.Check() == nil {
			t.Errorf("%q is a day", day)
		}
	}
}
