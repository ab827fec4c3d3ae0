package netlab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestToolsAreFoundWithoutPATH: tc and ip are in sbin, which a user's PATH may not have.
func TestToolsAreFoundWithoutPATH(t *testing.T) {
	dir, was := t.TempDir(), sbin
	defer func() { sbin = was }()
	sbin = []string{filepath.Join(dir, "none"), dir}
	t.Setenv("PATH", t.TempDir())
	if path, err := tool("tc"); err == nil || !strings.Contains(err.Error(), "tc is neither in PATH nor in ") {
		t.Errorf("found at %q: %v", path, err)
	}
	want := filepath.Join(dir, "tc")
	if err := os.WriteFile(want, []byte("#!/bin/sh\necho $0 \"$@\"; exit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if path, err := tool("tc"); err != nil || path != want {
		t.Errorf("found at %q, %v; want %s", path, err, want)
	}
	if err := program("tc", "-x"); err == nil || !strings.Contains(err.Error(), want+" -x") {
		t.Errorf("it was not run: %v", err)
	}
}
