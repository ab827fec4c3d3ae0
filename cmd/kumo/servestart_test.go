package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/wait"
	"kumo/internal/view/web/ui"
)

// newStarter returns a starter whose program is a script that notes its arguments, and their file.
func newStarter(t *testing.T, script string) (s *crawlStarter, notes string) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("SKIPPED: there is no /bin/sh")
	}
	notes = filepath.Join(t.TempDir(), "notes")
	program := filepath.Join(t.TempDir(), "kumo")
	text := "#!/bin/sh\necho \"$@\" >> " + notes + "\n" + script
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := newCrawlStarter(t.Context(), filepath.Join(t.TempDir(), "new"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.program = program
	return s, notes
}

func readNotes(t *testing.T, name string) []string {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// TestStarterArguments passes the settings of a form as flags, and shows the error of a crawl that does not start.
func TestStarterArguments(t *testing.T) {
	s, notes := newStarter(t, "echo 'kumo: seeds: no such host\nsee: kumo crawl --help' >&2; exit 2")
	r := ui.StartRequest{Name: "one", Seeds: []string{"https://example.com/"}, Limit: "7", Exclude: "a b", Embeds: true}
	_, err := s.Start(t.Context(), r)
	if err == nil || err.Error() != "seeds: no such host" {
		t.Errorf("the error is %v", err)
	}
	want := "crawl --quiet --out=" + filepath.Join(s.root, "one") +
		" --exclude=a b --limit=7 --embeds -- https://example.com/"
	if got := readNotes(t, notes); !slices.Equal(got, []string{want}) {
		t.Errorf("started as %q, want %q", got, want)
	}
	if err := os.Mkdir(filepath.Join(s.root, "two"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.Name = "two"
	if _, err := s.Start(t.Context(), r); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("in a folder that exists: %v", err)
	}
}

// TestSchedules starts crawls when they are due, once, also after a restart of the server.
func TestSchedules(t *testing.T) {
	s, notes := newStarter(t, "")
	dir := filepath.Join(s.root, "c")
	if err := os.MkdirAll(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	s.now = func() time.Time { return now }
	s.addDir(dir)
	if err := s.SetSchedule(dir, 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	s.startDue()
	if _, err := os.Stat(notes); err == nil {
		t.Error("a crawl started before its time")
	}
	now = now.Add(24 * time.Hour)
	s.startDue()
	s.startDue()
	s.ended.Wait()
	want := "crawl --quiet --out=" + dir + " --due --recrawl=21h0m0s"
	if got := readNotes(t, notes); !slices.Equal(got, []string{want}) {
		t.Errorf("started as %q, want %q", got, want)
	}
	x, err := s.Schedule(dir)
	if err != nil || x.Every != 24*time.Hour || !x.Next.Equal(now.Add(24*time.Hour)) {
		t.Errorf("the schedule is %+v (%v)", x, err)
	}

	now = now.Add(72 * time.Hour) // while no server ran
	again := &crawlStarter{program: s.program, root: s.root, ctx: t.Context(), log: s.log, now: s.now,
		running: map[string]*startedCrawl{}}
	again.addDir(dir)
	again.startDue()
	again.ended.Wait()
	if got := readNotes(t, notes); len(got) != 2 {
		t.Errorf("after a restart %d crawls were started, want 2 with the first", len(got))
	}
	if err := again.SetSchedule(dir, 0); err != nil {
		t.Fatal(err)
	}
	if x, err := again.Schedule(dir); err != nil || x != (ui.Schedule{}) {
		t.Errorf("without a schedule: %+v (%v)", x, err)
	}
}

// TestStarterEnds ends crawls with the server.
func TestStarterEnds(t *testing.T) {
	s, _ := newStarter(t, "trap 'echo ended >> $0.log; exit 0' TERM\ntouch $0.ready\nwhile :; do sleep 0.1; done")
	ctx, end := context.WithCancel(t.Context())
	s.ctx = ctx
	if _, err := s.run(filepath.Join(s.root, "c"), nil); err != nil {
		t.Fatal(err)
	}
	for range wait.Ticks(t.Context(), 10*time.Millisecond) {
		if _, err := os.Stat(s.program + ".ready"); err == nil {
			break
		}
	}
	if _, err := s.run(filepath.Join(s.root, "c"), nil); err == nil {
		t.Error("a crawl was started twice")
	}
	end()
	s.ended.Wait()
	if text, err := os.ReadFile(s.program + ".log"); err != nil || string(text) != "ended\n" {
		t.Errorf("at its end it wrote %q (%v)", text, err)
	}
}
