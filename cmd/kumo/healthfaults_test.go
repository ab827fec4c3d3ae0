package main

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kumo/internal/app/session"
	"kumo/internal/cluster/bus/bustest"
	"kumo/internal/lab/testmain"
)

// getHealth returns the status and the body of a health check.
func getHealth(address, path string) (code int, body string) {
	client := &http.Client{Timeout: 20 * time.Second}
	resp, err := client.Get("http://" + address + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, fmt.Sprint(string(text), err)
}

// While the cluster's servers are away, for longer than the time after which a loop counts as stuck, nodes are alive but
// not ready: a supervisor must not restart them. Afterwards they are ready again.
func TestHealthWithoutServers(t *testing.T) {
	if testmain.Rounds(0, 1) == 0 {
		t.Skip("SKIPPED: takes three minutes; set KUMO_TEST_LONG=1")
	}
	t.Parallel()
	c := newFaultCluster(t, 43)
	all := bustest.Addresses(t, 3)
	program, err := exec.LookPath(natsProgram)
	if err != nil {
		t.Fatal(err)
	}
	startNATS := func() *exec.Cmd {
		cmd := exec.Command(program, all[0], filepath.Join(c.dir, "nats"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		return cmd
	}
	nats := startNATS()
	c.connect = []string{"--nats", "nats://" + all[0]}
	nodes := all[1:]
	for i, at := range nodes {
		name := fmt.Sprint("n", i)
		c.start("--name", name, "--nats", "nats://"+all[0], "--dns-server", c.server.DNS(), "--out", name, "--metrics", at)
	}
	// 60 s between requests: the crawls go on until the end of the test
	for _, crawl := range []string{"news", "docs"} {
		c.begin(crawl, "--delay", "1m")
	}
	want := func(path string, code int) {
		t.Helper()
		for _, at := range nodes {
			is, body := getHealth(at, path)
			for tries := 0; is != code && tries < 120; tries++ {
				time.Sleep(500 * time.Millisecond)
				is, body = getHealth(at, path)
			}
			if is != code {
				t.Errorf("%s of %s: %d, want %d: %s", path, at, is, code, body)
			}
		}
	}
	want("/readyz", http.StatusOK)
	nats.Process.Kill()
	nats.Wait()
	want("/readyz", http.StatusServiceUnavailable)
	for began := time.Now(); time.Since(began) < session.StuckAfter+30*time.Second; time.Sleep(5 * time.Second) {
		for _, at := range nodes {
			if code, body := getHealth(at, "/healthz"); code != http.StatusOK {
				t.Fatalf("/healthz of %s after %v without servers: %d %s", at, time.Since(began).Round(time.Second), code, body)
			}
			if code, body := getHealth(at, "/readyz"); code != http.StatusServiceUnavailable ||
				!strings.Contains(body, "servers") {
				t.Errorf("/readyz of %s after %v without servers: %d %s", at, time.Since(began).Round(time.Second), code, body)
			}
		}
	}
	startNATS()
	want("/readyz", http.StatusOK)
	want("/healthz", http.StatusOK)
}
