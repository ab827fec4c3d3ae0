package chromium

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/content/render"
)

func newPool(t *testing.T, change func(*PoolConfig)) *Pool {
	t.Helper()
	cfg := PoolConfig{Pages: 2, Browser: Config{NoSandbox: os.Geteuid() == 0, Quiet: 100 * time.Millisecond}}
	if change != nil {
		change(&cfg)
	}
	p, err := NewPool(cfg)
	if errors.Is(err, ErrNoBrowser) && os.Getenv("CI") == "" {
		t.Skip("SKIPPED: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// browser returns the current browser; nil if none is running.
func (p *Pool) browser() *Browser {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return nil
	}
	return p.current.Browser
}

// TestPoolRenews: a browser starts with the first page, and is replaced after some pages, some time, a crash or Close.
func TestPoolRenews(t *testing.T) {
	now := time.Now()
	p := newPool(t, func(c *PoolConfig) {
		c.Renew, c.MaxAge, c.Now = 3, time.Hour, func() time.Time { return now }
	})
	w := &web{files: map[string]string{"x.test/": "<p>well"}}
	last := p.browser()
	if last != nil {
		t.Error("a browser runs before the first page")
	}
	for i, step := range []struct {
		name   string
		before func()
		renews bool
	}{
		{"first page", func() {}, true},
		{"second page", func() {}, false},
		{"third page", func() {}, false},
		{"after three pages", func() {}, true},
		{"just before an hour", func() { now = now.Add(time.Hour - 1) }, false},
		{"after an hour", func() { now = now.Add(1) }, true},
		{"after a crash", func() { p.browser().kill(); <-p.browser().ctx.Done() }, true},
		{"after Close", func() { _ = p.Close() }, true},
	} {
		step.before()
		r, err := p.Render(t.Context(), render.Job{URL: "http://x.test/", Answer: w.answer})
		if err != nil || !bytes.Contains(r.HTML, []byte("well")) {
			t.Fatalf("%d, %s: %v", i, step.name, err)
		}
		if renewed := p.browser() != last; renewed != step.renews {
			t.Errorf("%s: another browser: %v, want %v", step.name, renewed, step.renews)
		}
		last = p.browser()
	}
}

// TestPoolRetries: a page whose browser crashes is rendered once more, and not a third time.
func TestPoolRetries(t *testing.T) {
	for crashes, want := range []error{nil, nil, render.ErrCrashed} {
		p := newPool(t, nil)
		var mu sync.Mutex
		loads := 0
		_, err := p.Render(t.Context(), render.Job{URL: "http://x.test/", Answer: func(ctx context.Context, r *render.Request) (
			*render.Response, error) {
			if !r.Document {
				return nil, render.ErrBlocked
			}
			mu.Lock()
			defer mu.Unlock()
			if loads++; loads <= crashes {
				p.browser().kill()
			}
			return &render.Response{Status: 200, Body: []byte("<p>well")}, nil
		}})
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%d crashes: %v, want %v", crashes, err, want)
		}
		if most := min(crashes+1, 2); loads != most {
			t.Errorf("%d crashes: the page was loaded %d times, want %d", crashes, loads, most)
		}
	}
}

// TestPoolWithoutBrowser: a program that is no browser is an error, at once for pages that follow.
func TestPoolWithoutBrowser(t *testing.T) {
	starts := t.TempDir() + "/starts"
	fake := t.TempDir() + "/chromium"
	if err := os.WriteFile(fake, fmt.Appendf(nil, "#!/bin/sh\necho >>%s\nexit 1\n", starts), 0o755); err != nil {
		t.Fatal(err)
	}
	p := newPool(t, func(c *PoolConfig) { c.Browser.Path = fake })
	for range 3 {
		if _, err := p.Render(t.Context(), render.Job{URL: "http://x.test/"}); err == nil {
			t.Error("a page was rendered")
		}
	}
	if text, err := os.ReadFile(starts); err != nil || len(text) != 1 {
		t.Errorf("the program was started %d times, want once (%v)", len(text), err)
	}
}

// TestKilledProgram: if the program is killed, the browser ends, too. The test starts itself as the program.
func TestKilledProgram(t *testing.T) {
	const asProgram = "KUMO_TEST_STARTS_BROWSER"
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: needs /proc")
	}
	if os.Getenv(asProgram) != "" {
		newBrowser(t, nil)
		fmt.Println("started")
		select {}
	}
	newPool(t, nil) // skips without a browser
	t.Setenv("TMPDIR", t.TempDir())
	cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledProgram$")
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	pids := descendants(t, cmd.Process.Pid)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if len(pids) < 2 {
		t.Fatalf("the browser has the processes %v", pids)
	}
	left := pids
	for range 400 {
		if left = running(pids); len(left) == 0 {
			leavesNoProfile(t)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("these processes are left of %v: %v", pids, left)
}

// leavesNoProfile tests that the next browser removes the profile that a killed program left, and its own.
func leavesNoProfile(t *testing.T) {
	t.Helper()
	count := func() int {
		all, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if n := count(); n != 1 {
		t.Errorf("%d files are left by a killed program, want its profile", n)
	}
	b := newBrowser(t, nil)
	other := newBrowser(t, nil) // removes nothing of the first one
	if n := count(); n != 2 || !b.Healthy() {
		t.Errorf("two browsers have %d profiles", n)
	}
	b.Close()
	other.Close()
	if n := count(); n != 0 {
		t.Errorf("%d files are left after Close", n)
	}
}

// descendants returns the processes below one.
func descendants(t *testing.T, root int) (all []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	children := map[int][]int{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			parent, _ := stat(pid)
			children[parent] = append(children[parent], pid)
		}
	}
	for todo := []int{root}; len(todo) > 0; todo = todo[1:] {
		todo = append(todo, children[todo[0]]...)
		all = append(all, children[todo[0]]...)
	}
	return all
}

// stat returns the parent and the state of a process; the state is "" if it has ended.
func stat(pid int) (parent int, state string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, ""
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	parent, _ = strconv.Atoi(fields[1])
	return parent, fields[0]
}

func running(pids []int) (left []int) {
	for _, pid := range pids {
		if _, state := stat(pid); state != "" && state != "Z" {
			left = append(left, pid)
		}
	}
	return left
}
