package main

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kumo/internal/lab/synthweb"
)

// A crawl that is started while another command reads its folder waits, logs that, and continues. A second crawl in the
// same folder is refused.
func TestACrawlStartsDuringALook(t *testing.T) {
	s, err := synthweb.Serve(t.Context(), synthweb.New(synthweb.Clean(1, 2, 20)), synthweb.ServeOptions{DNS: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dir := filepath.Join(t.TempDir(), "c")
	begin := exec.Command(kumoProgram(t), "crawl", "-q", "--delay", "0", "--ip-delay", "0", "--allow-private", "--scope",
		"any",
		"--dns-server", s.DNS(), "--limit", "1", "-o", dir, s.SeedURLs()[0])
	if out, err := begin.CombinedOutput(); begin.ProcessState.ExitCode() != exitLimit {
		t.Fatalf("%v\n%s", err, out)
	}
	look, err := openView(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	waits := exec.CommandContext(t.Context(), kumoProgram(t), "crawl", "--limit", "0", "-o", dir)
	said, err := waits.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	words := bufio.NewScanner(said)
	for words.Scan() && !strings.Contains(words.Text(), "waiting for a reader of "+dir) {
	}
	second := exec.Command(kumoProgram(t), "crawl", "-q", "-o", dir)
	if out, err := second.CombinedOutput(); second.ProcessState.ExitCode() != exitFailed ||
		!strings.Contains(string(out), "another kumo is working on it") {
		t.Errorf("a second crawl: %v\n%s", err, out)
	}
	if err := look.Close(); err != nil {
		t.Error(err)
	}
	for words.Scan() {
	}
	if err := waits.Wait(); err != nil {
		t.Errorf("the crawl: %v, %s", err, words.Text())
	}
	if score := s.Score(); !score.Perfect() {
		t.Errorf("the servers saw:\n%s", score)
	}
	wantVerified(t, dir)
}
