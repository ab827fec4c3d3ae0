// Package hadooptest connects tests to a real Hadoop cluster.
//
// KUMO_TEST_HADOOP names the folder of its configuration: that of .ci/hadoop/testbed, or of any cluster that tests may
// change. Without the variable, the tests are skipped.
package hadooptest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kumo/internal/content/hadoopconf"
)

// Conf is the configuration.
func Conf(t testing.TB) hadoopconf.Conf {
	t.Helper()
	dir := os.Getenv("KUMO_TEST_HADOOP")
	if dir == "" {
		t.Skip("SKIPPED: there is no Hadoop; .ci/hadoop/testbed starts one, and runs tests with KUMO_TEST_HADOOP")
	}
	conf, err := hadoopconf.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return conf
}

// TempFolder is the URL of a folder in HDFS of the test's own, which need not be there yet, and goes with the test.
func TempFolder(t testing.TB) string {
	t.Helper()
	Conf(t)
	folder := fmt.Sprintf("/tmp/kumo-test-%08x", rand.Uint32())
	t.Cleanup(func() { Run(t, "hdfs", "dfs", "-rm", "-r", "-f", "-skipTrash", folder) })
	return "hdfs://" + folder
}

// A Node is a name of the testbed's processes.
type Node string

// Kill kills a process hard, until the test ends or it is revived. Tests of clusters that are no testbed are skipped.
func Kill(t testing.TB, node Node) {
	t.Helper()
	testbed(t, "kill", string(node))
	t.Cleanup(func() {
		if !IsUp(t, node) {
			Revive(t, node)
		}
	})
}

// IsUp reports whether a process is up.
func IsUp(t testing.TB, node Node) bool {
	t.Helper()
	out, _ := testbedCommand(t, "status").Output() // it fails where something is down
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == string(node) {
			return fields[1] != "down"
		}
	}
	t.Fatalf("the testbed has no %s", node)
	return false
}

// Revive starts a process again, and waits until the cluster is whole.
func Revive(t testing.TB, node Node) {
	t.Helper()
	ReviveAll(t, nil, node)
}

// ReviveAll starts processes again, with more variables in their environment, and waits until the cluster is whole.
func ReviveAll(t testing.TB, env []string, nodes ...Node) {
	t.Helper()
	for _, node := range nodes {
		cmd := testbedCommand(t, "revive", string(node))
		cmd.Env = append(os.Environ(), env...)
		run(t, cmd)
	}
	Await(t, time.Minute, "all nodes", func() bool { return testbedCommand(t, "ready").Run() == nil })
}

// Await waits until something has come about in the cluster, which says so only when it is asked.
func Await(t testing.TB, longest time.Duration, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(longest); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not in %v", what, longest)
		}
	}
}

func testbed(t testing.TB, args ...string) {
	t.Helper()
	run(t, testbedCommand(t, args...))
}

func testbedCommand(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	script := testbedScript(t)
	return exec.CommandContext(deadline(t), script, append([]string{args[0], filepath.Dir(script)}, args[1:]...)...)
}

func testbedScript(t testing.TB) string {
	t.Helper()
	script := filepath.Join(filepath.Dir(Conf(t).Dir), "testbed")
	if _, err := os.Stat(script); err != nil {
		t.Skip("SKIPPED: KUMO_TEST_HADOOP is no testbed, whose processes may be killed")
	}
	return script
}

// A Master is the process of a job's application master. It outlives its job by some seconds.
type Master struct{ container, pid string }

// MasterOf finds the first application master of a job. Tests of clusters that are no testbed are skipped.
func MasterOf(t testing.TB, job string) *Master {
	t.Helper()
	testbedScript(t)
	m := &Master{container: fmt.Sprintf("container%s_01_000001", strings.TrimPrefix(job, "job"))}
	if m.pid = javaOf(m.container); m.pid == "" {
		t.Fatalf("the process of %s has ended", m.container)
	}
	t.Cleanup(func() { m.signal("CONT") })
	return m
}

func (m *Master) signal(name string) {
	_ = exec.Command("kill", "-"+name, m.pid).Run() // it may have ended
}

// Pause lets it do nothing until Release.
func (m *Master) Pause() { m.signal("STOP") }

// Resume lets it go on, and waits until it has ended.
func (m *Master) Resume(t testing.TB) {
	t.Helper()
	m.signal("CONT")
	m.awaitEnd(t)
}

// Terminate asks it to end, as YARN does, and waits until it has.
func (m *Master) Terminate(t testing.TB) {
	t.Helper()
	m.signal("TERM")
	m.awaitEnd(t)
}

func (m *Master) awaitEnd(t testing.TB) {
	t.Helper()
	Await(t, time.Minute, "the end of "+m.container, func() bool { return javaOf(m.container) == "" })
}

// javaOf is the JVM in a container: the shells that began it work in the same folder.
func javaOf(container string) (pid string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	for _, dir := range dirs {
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd")) // it may have ended
		name, _ := os.ReadFile(filepath.Join(dir, "comm"))
		if filepath.Base(cwd) == container && strings.TrimSpace(string(name)) == "java" {
			return filepath.Base(dir)
		}
	}
	return ""
}

// Run runs one of Hadoop's commands and returns what it prints.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	return run(t, exec.CommandContext(deadline(t), name, args...))
}

// deadline bounds a command; it also runs while a test is cleaned up.
func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func run(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}
