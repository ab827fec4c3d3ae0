//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kumo/internal/lab/testmain"
)

// A siege is a crawl of a hostile web by the program itself, with its measurements.
type siege struct {
	peak  int64 // MB
	small int64 // pages that the well-behaved hosts have served
	took  time.Duration
}

// besiege crawls a web for a time span and measures the process. KUMO_TEST_BINARY names another program to use.
func besiege(t *testing.T, web *hostileWeb, memory string, hosts int, span time.Duration, flags ...string) siege {
	t.Helper()
	dir := t.TempDir()
	seeds := filepath.Join(dir, "seeds")
	if err := os.WriteFile(seeds, []byte(strings.Join(web.seeds, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	program := os.Getenv("KUMO_TEST_BINARY")
	if program == "" {
		program = kumoProgram(t)
	}
	args := []string{"crawl", "-i", seeds, "-o", filepath.Join(dir, "crawl"), "--memory", memory, "-c", fmt.Sprint(hosts),
		"--delay", "0",
		"--ip-delay", "0", "--allow-private", "--insecure", "--timeout", "5s", "--tries", "2", "--min-free-disk", "0", "-q",
		"--contact", "test@example.org",
		"--time-limit", span.String()}
	cmd := exec.Command(program, append(args, flags...)...)
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=", "GOGC=")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	begun, before := time.Now(), web.small.Load()
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != 4 {
		t.Errorf("%v: %.2000s", err, out.String())
	}
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	s := siege{peak: used.Maxrss >> 10, small: web.small.Load() - before, took: time.Since(begun)}
	var asked []string
	web.asked.Range(func(name, n any) bool {
		asked = append(asked, fmt.Sprintf("%s %d", name, n.(*atomic.Int64).Load()))
		return true
	})
	t.Logf("peak %d MB, %v, CPU %v, %d small pages; %s", s.peak, s.took.Round(time.Millisecond),
		cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), s.small, strings.Join(asked, ", "))
	return s
}

// bound returns the most memory that a process with this --memory may use, in MB.
func bound(memory int64) int64 { return memory*5/4 + 150 }

// hungryRules extract as much as possible of any page.
const hungryRules = `- {name: all, url: ., each: {xpath: //*}, fields: {text: ":scope > *", all: {css: "*", list: true, html: true}}}
- {name: page, url: ., fields: {a: {css: a, attr: href, type: url, list: true}, deep: "div div div div div", x: {xpath: "//b//a"}}}
`

// TestSiege crawls hosts made to use as much memory of the crawler as possible, with little memory. The process stays
// within its bound, and continues to fetch from well-behaved hosts. TestSieges is the long form.
func TestSiege(t *testing.T) {
	testmain.Slow(t)
	const memory, hosts, calm = 64, 4, 20
	each := attackNamed(t, "stalled", "gzip", "brotli", "fields", "long field", "links", "small page of long links",
		"UTF-16", "sitemap",
		"robots.txt", "redirects", "tables", "binary")
	web := serveHostile(t, hosts, false, each...)
	fleet := serveHostile(t, calm, false, smallPage)
	web.seeds = append(web.seeds, fleet.seeds...)
	const wanted = 5 * calm
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte(hungryRules), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 5 { // a busy machine needs longer
		judge(t, besiege(t, web, "64MB", 100, 6*time.Second, "--text", "--fields", rules), memory)
		if fleet.small.Load() >= wanted {
			break
		}
	}
	if n := fleet.small.Load(); n < wanted {
		t.Errorf("the well-behaved hosts have served %d pages, want 5 each", n)
	}
}
