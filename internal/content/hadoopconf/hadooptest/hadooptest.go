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

// Conf returns the configuration of the test cluster. It skips the test if there is none.
func Conf(t testing.TB) hadoopconf.Conf {
	t.Helper()
	dir := os.Getenv("KUMO_TEST_HADOOP")
	if dir == "" {
		t.Skip("SKIPPED: there is no Hadoop; .ci/hadoop/testbed starts one and runs tests with KUMO_TEST_HADOOP")
	}
	conf, err := hadoopconf.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return conf
}

// TempFolder returns the URL of a folder in HDFS for the test. It does not exist yet, and is removed after the test.
func TempFolder(t testing.TB) string {
	t.Helper()
	Conf(t)
	folder := fmt.Sprintf("/tmp/kumo-test-%08x", rand.Uint32())
	t.Cleanup(func() { Run(t, "hdfs", "dfs", "-rm", "-r", "-f", "-skipTrash", folder) })
	return "hdfs://" + folder
}

// A Node is the name of a process of the testbed.
type Node string

// Kill kills a process until the test ends or calls Revive. It skips the test if the cluster is not a testbed.
func Kill(t testing.TB, node Node) {
	t.Helper()
	testbed(t, "kill", string(node))
	t.Cleanup(func() {
		if !IsUp(t, node) {
			Revive(t, node)
		}
	})
}

// IsUp reports whether a process is running.
func IsUp(t testing.TB, node Node) bool {
	t.Helper()
	out, _ := testbedCommand(t, "status").Output() // the exit status is nonzero if any process is down
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == string(node) {
			return fields[1] != "down"
		}
	}
	t.Fatalf("the testbed has no %s", node)
	return false
}

// Revive starts a process again, and waits until the cluster is healthy.
func Revive(t testing.TB, node Node) {
	t.Helper()
	ReviveAll(t, nil, node)
}

// ReviveAll starts processes again, with additional environment variables, and waits until the cluster is healthy.
func ReviveAll(t testing.TB, env []string, nodes ...Node) {
	t.Helper()
	for _, node := range nodes {
		cmd := testbedCommand(t, "revive", string(node))
		cmd.Env = append(os.Environ(), env...)
		run(t, cmd)
	}
	Await(t, time.Minute, "all nodes", func() bool { return testbedCommand(t, "ready").Run() == nil })
}

// Await polls until a condition of the cluster is true.
func Await(t testing.TB, longest time.Duration, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(longest); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, longest)
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
		t.Skip("SKIPPED: KUMO_TEST_HADOOP is not a testbed, so its processes must not be killed")
	}
	return script
}

// A Master is the process of a job's application master. It outlives its job by some seconds.
type Master struct{ container, pid string }

// MasterOf finds the first application master of a job. It skips the test if the cluster is not a testbed.
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
	_ = exec.Command("kill", "-"+name, m.pid).Run() // the process may have ended
}

// Pause stops the process until Resume.
func (m *Master) Pause() { m.signal("STOP") }

// Resume continues the process, and waits until it has ended.
func (m *Master) Resume(t testing.TB) {
	t.Helper()
	m.signal("CONT")
	m.awaitEnd(t)
}

// Terminate sends SIGTERM, as YARN does, and waits until the process has ended.
func (m *Master) Terminate(t testing.TB) {
	t.Helper()
	m.signal("TERM")
	m.awaitEnd(t)
}

func (m *Master) awaitEnd(t testing.TB) {
	t.Helper()
	Await(t, time.Minute, "the end of "+m.container, func() bool { return javaOf(m.container) == "" })
}

// javaOf returns the JVM in a container: the shells that started it have the same working directory.
func javaOf(container string) (pid string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	for _, dir := range dirs {
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd")) // the process may have ended
		name, _ := os.ReadFile(filepath.Join(dir, "comm"))
		if filepath.Base(cwd) == container && strings.TrimSpace(string(name)) == "java" {
			return filepath.Base(dir)
		}
	}
	return ""
}

// Run runs a Hadoop command and returns its output.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	return run(t, exec.CommandContext(deadline(t), name, args...))
}

// deadline returns the context of a command. It is also used during the test's cleanup.
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
