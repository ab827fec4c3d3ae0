package netlab

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// run runs a command on a host to its end, and returns the time that it took.
func run(t *testing.T, h *Host, cmd *exec.Cmd) (took time.Duration, err error) {
	t.Helper()
	began := time.Now()
	p, err := h.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Wait(30 * time.Second)
	return time.Since(began), err
}

// limited returns a host with limits. Where the machine does not support limits for processes, the test is skipped; in
// CI it fails.
func limited(t *testing.T, limits Limits) *Host {
	t.Helper()
	h := ForTest(t, 1).Add(t, "a")
	if err := h.Limit(limits); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED: processes cannot be held within limits here: %v", err)
	}
	return h
}

func TestLimitOfProcessorTime(t *testing.T) {
	h := limited(t, Limits{CPU: 0.1, Processors: 1})
	var out bytes.Buffer
	// the limit applies to grandchildren, too
	cmd := exec.Command("sh", "-c", "nproc; timeout 2 sh -c 'while :; do :; done'; true")
	cmd.Stdout = &out
	took, err := run(t, h, cmd)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.TrimSpace(out.String()); n != "1" {
		t.Errorf("it may run on %s processors, want 1", n)
	}
	is, err := h.Usage()
	if err != nil {
		t.Fatal(err)
	}
	// on a machine so busy that it has no tenth left for the process, the process is not throttled
	if share := is.CPU.Seconds() / took.Seconds(); share > 0.13 || share > 0.09 && is.Throttled < took/3 {
		t.Errorf("of a tenth of a processor it has used %.3f; it was held back for %v of %v", share, is.Throttled, took)
	}
}

// TestLimitOfMemory runs a program that holds all input in memory before it writes it.
func TestLimitOfMemory(t *testing.T) {
	h := limited(t, Limits{Memory: 24 << 20})
	for _, c := range []struct {
		megabytes int
		killed    bool
	}{{4, false}, {100, true}} {
		bytes := strconv.Itoa(c.megabytes << 20)
		_, err := run(t, h, exec.Command("sh", "-c", "head -c "+bytes+" /dev/zero | tail -c "+bytes))
		if killed := err != nil; killed != c.killed {
			t.Errorf("%d MB: %v", c.megabytes, err)
		}
	}
	is, err := h.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if is.Peak < 16<<20 || is.Peak > 24<<20 || is.Reclaims == 0 {
		t.Errorf("%+v", is)
	}
}

func TestLimitOfTheDisk(t *testing.T) {
	h := limited(t, Limits{})
	dir, err := h.Disk(64<<20, 8_000_000)
	if err != nil {
		t.Fatal(err)
	}
	if took, err := run(t, h, exec.Command("dd", "if=/dev/zero", "of="+filepath.Join(dir, "a"), "bs=64k", "count=32",
		"conv=fsync")); err != nil || took < 1700*time.Millisecond {
		t.Errorf("2 MB at a megabyte a second took %v: %v", took, err)
	}
	if is, err := h.Usage(); err != nil || is.Written < 2<<20 || is.Written > 3<<20 {
		t.Errorf("of 2 MB %d bytes were written: %v", is.Written, err)
	}
}

// TestLimitsEndWithTheLab: no groups, mounts and devices are left, and the next disk has no limit.
func TestLimitsEndWithTheLab(t *testing.T) {
	h := limited(t, Limits{CPU: 0.5, Memory: 64 << 20})
	dir, err := h.Disk(16<<20, 800_000)
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.Start(exec.Command("sh", "-c", "cd "+dir+"; sleep 1000 & exec sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.lab.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(30 * time.Second); err == nil {
		t.Error("it has ended by itself")
	}
	for _, group := range h.groups {
		if _, err := os.Stat(group); err == nil {
			t.Errorf("%s is left", group)
		}
	}
	if mounts, _ := os.ReadFile("/proc/self/mounts"); strings.Contains(string(mounts), dir) {
		t.Errorf("%s is left", dir)
	}
	blkio, err := groupsOf("blkio")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile(filepath.Join(blkio, "blkio.throttle.write_bps_device"))
	if err != nil || strings.Contains("\n"+string(rules), "\n"+h.disk.number+" ") {
		t.Errorf("the device is still limited: %q, %v", rules, err)
	}
}

// TestLimitsOfTheDeadAreSwept simulates a lab whose process was killed: the name of a host contains the id of an ended
// process.
func TestLimitsOfTheDeadAreSwept(t *testing.T) {
	h := limited(t, Limits{CPU: 0.5})
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dead := &Host{Name: "x", lab: h.lab, space: namePrefix + strconv.Itoa(ended.Process.Pid) + "-5-1-x"}
	if err := ip("netns", "add", dead.space); err != nil {
		t.Fatal(err)
	}
	if err := dead.Limit(Limits{CPU: 0.5}); err != nil {
		t.Fatal(err)
	}
	dir, err := dead.Disk(16<<20, 800_000)
	if err != nil {
		t.Fatal(err)
	}
	p, err := dead.Start(exec.Command("sleep", "1000"))
	if err != nil {
		t.Fatal(err)
	}
	if err := removeStale(); err != nil {
		t.Fatal(err)
	}
	if p.Wait(5*time.Second) == nil || p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it has ended by itself: %v", p.err)
	}
	for _, path := range []string{dead.groups["cpu"], dead.groups["memory"], dir} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
	for _, path := range []string{h.groups["cpu"], h.groups["memory"]} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the living have lost theirs: %v", err)
		}
	}
}
