//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kumo/internal/lab/synthweb"
)

// TestFewDescriptors crawls in processes with a low limit of open files, and with a state in many files. No page may be
// missing, and no host may be abandoned.
func TestFewDescriptors(t *testing.T) {
	for _, limit := range []int{64, 100} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			s, err := synthweb.Serve(t.Context(), synthweb.New(synthweb.Clean(uint64(limit), 60, 1500)),
				synthweb.ServeOptions{DNS: true})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			dir := filepath.Join(t.TempDir(), "crawl")
			said := limited(t, limit, exitDone, "crawl", "-o", dir, "--delay", "5ms", "--ip-delay", "0", "--scope", "any",
				"--allow-private",
				"--contact", "test@example.org", "--dns-server", s.DNS(), "-c", "200", "--memory", "1MiB", "--checkpoint", "64KiB",
				"--min-free-disk", "0",
				s.SeedURLs()[0])
			if want := fmt.Sprintf("a limit of %d open files leaves ", limit); !strings.Contains(said, want) {
				t.Errorf("it does not say %q:\n%s", want, said)
			}
			if score := s.Score(); score.Missing > 0 || score.Repeats > 0 {
				t.Errorf("the servers saw:\n%s\n%s", score, said)
			}
			data, err := os.ReadFile(filepath.Join(dir, "report.json"))
			if err != nil {
				t.Fatal(err)
			}
			var report struct {
				GivenUp int `json:"hosts_given_up"`
			}
			if err := json.Unmarshal(data, &report); err != nil || report.GivenUp > 0 {
				t.Errorf("%d hosts were given up, %v", report.GivenUp, err)
			}
			limited(t, limit, exitDone, "verify", dir)
		})
	}
}

func TestTooFewDescriptorsAreSaid(t *testing.T) {
	said := limited(t, 40, exitUsage, "crawl", "-o", filepath.Join(t.TempDir(), "crawl"), "http://127.0.0.1:1/")
	if !strings.Contains(said, "a limit of 40 open files is too low: a crawl needs at least 52") {
		t.Error(said)
	}
}

// limited runs kumo with a limit of open files, and returns its output.
func limited(t *testing.T, limit, want int, args ...string) string {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, limit), "sh", kumoProgram(t)},
		args...)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != want {
		t.Fatalf("%v: exit code %d, want %d (%v)\n%s", args, code, want, err, said.String())
	}
	return said.String()
}
