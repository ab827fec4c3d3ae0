package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kumo/internal/lab/synthweb"
)

// TestAServiceManagerIsTold: a service manager with a watchdog is notified that a crawl runs, repeatedly of its
// progress, and of its end.
func TestAServiceManagerIsTold(t *testing.T) {
	web, err := synthweb.Serve(t.Context(), synthweb.New(synthweb.Clean(5, 3, 3000)), synthweb.ServeOptions{DNS: true})
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	socket := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command(kumoProgram(t), "crawl", "-q", "-o", filepath.Join(t.TempDir(), "crawl"), "--delay", "50ms",
		"--scope", "any",
		"--allow-private", "--dns-server", web.DNS(), web.SeedURLs()[0])
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=200000")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	hear := func() string {
		if err := l.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 4096)
		n, err := l.Read(buf)
		if err != nil {
			t.Fatal("nothing more is said: ", err)
		}
		return string(buf[:n])
	}
	if got := hear(); got != "READY=1" {
		t.Errorf("%q is said first", got)
	}
	said := hear()
	for strings.HasPrefix(said, "STATUS=0 pages") {
		said = hear()
	}
	if !strings.HasPrefix(said, "STATUS=") || !strings.HasSuffix(said, " URLs wait\nWATCHDOG=1") {
		t.Errorf("%q is said while it runs", said)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for said = hear(); said != "STOPPING=1"; said = hear() {
		if !strings.HasPrefix(said, "STATUS=") {
			t.Fatalf("%q is said when it is to end", said)
		}
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitInterrupted {
		t.Error(err)
	}
}
