package machine

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const inGroups = "KUMO_TEST_GROUPS" // groups that the child process enters before it prints its limits

// TestRealGroups tests a process in control groups with limits. It needs root, and control groups are unavailable in
// most containers.
func TestRealGroups(t *testing.T) {
	if groups := os.Getenv(inGroups); groups != "" {
		enter(t, strings.Split(groups, ":"))
		return
	}
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root makes control groups")
	}
	dir := t.TempDir()
	l := NewLimits(dir)
	var groups []string
	want := l.Read()
	set := func(hierarchy string, limits map[string]string) bool {
		group := filepath.Join(hierarchy, fmt.Sprintf("kumo-test-%d", os.Getpid()))
		if err := os.Mkdir(group, 0o755); err != nil {
			t.Log("no group: ", err)
			return false
		}
		t.Cleanup(func() { leave(t, group) })
		for name, value := range limits {
			if err := os.WriteFile(filepath.Join(group, name), []byte(value), 0o644); err != nil {
				t.Log("no limit: ", err)
				return false
			}
		}
		groups = append(groups, group)
		return true
	}
	disk := "0:0"
	if all := l.devices(); len(all) > 0 {
		disk = all[len(all)-1]
	}
	g := l.groups()
	for _, one := range []struct {
		controller string
		first      map[string]string
		second     map[string]string
		expect     func()
	}{
		{"cpu", map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "70000"},
			map[string]string{"cpu.max": "70000 100000"}, func() { want.Cores = 0.7 }},
		{"memory", map[string]string{"memory.limit_in_bytes": "536870912"},
			map[string]string{"memory.max": "536870912"}, func() { want.MemoryGB = 0.5 }},
		{"blkio", map[string]string{"blkio.throttle.write_bps_device": disk + " 2000000"},
			map[string]string{"io.max": disk + " wbps=2000000"}, func() { want.DiskMbps = 16 }},
	} {
		if at := g.v1[one.controller]; len(at) > 0 && set(at[len(at)-1], one.first) ||
			len(at) == 0 && len(g.v2) > 0 && set(g.v2[len(g.v2)-1], one.second) {
			one.expect()
		} else {
			t.Logf("SKIPPED: no group with a limit of %s can be made here", one.controller)
		}
	}
	if len(groups) == 0 {
		t.Skip("SKIPPED: no control group can be made here")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestRealGroups$", "-test.v")
	cmd.Env = append(os.Environ(), inGroups+"="+strings.Join(groups, ":"), "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	_, said, _ := strings.Cut(string(out), "FIGURES ")
	said, _, _ = strings.Cut(said, "\n")
	var got Resources
	if err != nil || json.Unmarshal([]byte(said), &got) != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%v: %+v", groups, got)
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// enter enters groups and prints the limits of this process.
func enter(t *testing.T, groups []string) {
	for _, g := range groups {
		if err := os.WriteFile(filepath.Join(g, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := json.Marshal(NewLimits(t.TempDir()).Read())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("FIGURES %s\n", data)
}

// leave removes a group whose process has ended; the kernel may take a moment to notice.
func leave(t *testing.T, group string) {
	var err error
	for range 100 {
		if err = os.Remove(group); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error(err)
}
