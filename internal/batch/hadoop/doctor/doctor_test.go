package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kumo/internal/batch"
	"kumo/internal/batch/hadoop"
	"kumo/internal/content/hadoopconf"
	"kumo/internal/content/hadoopconf/hadooptest"
)

// The test's own binary is shipped with the job.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "task" {
		pipes := hadoop.Pipes{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
		if err := hadoop.Task(context.Background(), os.Args[2], os.Args[3], Job, pipes); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type findings []Finding

func (all *findings) tell(f Finding) { *all = append(*all, f) }

// of returns the finding on a subject, the worst if there are several.
func (all findings) of(what string) (worst Finding, found bool) {
	for _, f := range all {
		if f.Subject == what && (!found || f.State > worst.State) {
			worst, found = f, true
		}
	}
	return worst, found
}

func (all findings) check(t *testing.T, what string, state State, words string) {
	t.Helper()
	f, found := all.of(what)
	if !found || f.State != state || !strings.Contains(f.Detail, words) {
		t.Errorf("%s: %+v, want state %d and %q", what, f, state, words)
	}
	if f.State == Failed && f.Advice == "" {
		t.Errorf("%s: nobody says what to do", what)
	}
}

func TestASoundCluster(t *testing.T) {
	hadooptest.Conf(t)
	var all findings
	worst := Check(t.Context(), Config{URL: hadooptest.TempFolder(t), Job: true, Memory: 512, Task: []string{"task"}},
		all.tell)
	for _, f := range all {
		t.Logf("%d %s: %s", f.State, f.Subject, f.Detail)
	}
	if worst != Good {
		t.Error("something is wrong")
	}
	all.check(t, "HDFS", Good, "GB are free")
	all.check(t, "nodes", Good, "2 alive")
	all.check(t, "history", Good, "19888")
	all.check(t, "a job", Good, "it took")
}

func TestWithoutConfiguration(t *testing.T) {
	var all findings
	if Check(t.Context(), Config{ConfDir: t.TempDir()}, all.tell) != Failed {
		t.Error("an empty folder is sound")
	}
	all.check(t, "configuration", Failed, "no configuration of Hadoop")
}

// Each missing part of a cluster is reported, with advice.
func TestNothingAnswers(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "core-site.xml"), map[string]string{"fs.defaultFS": "hdfs://127.0.0.1:9"})
	write(t, filepath.Join(dir, "yarn-site.xml"),
		map[string]string{"yarn.resourcemanager.webapp.address": "127.0.0.1:9"})
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HADOOP_HOME", "")
	t.Setenv("JAVA_HOME", "")
	var all findings
	if Check(t.Context(), Config{ConfDir: dir, Job: true}, all.tell) != Failed {
		t.Error("it is sound")
	}
	all.check(t, "configuration", Failed, "mapreduce.framework.name")
	all.check(t, "Java", Failed, "java")
	all.check(t, "client", Failed, "hadoop")
	all.check(t, "HDFS", Failed, "127.0.0.1:9")
	all.check(t, "YARN", Failed, "127.0.0.1:9")
	all.check(t, "history", Warning, "JobHistoryServer")
	if _, found := all.of("a job"); found {
		t.Error("a job was run")
	}
}

func write(t *testing.T, name string, properties map[string]string) {
	t.Helper()
	text := "<configuration>"
	for name, value := range properties {
		text += fmt.Sprintf("<property><name>%s</name><value>%s</value></property>", name, value)
	}
	if err := os.WriteFile(name, []byte(text+"</configuration>"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestWhatTheResourceManagerTells(t *testing.T) {
	const info = `{"clusterInfo":{"state":"STARTED","haState":"ACTIVE","hadoopVersion":"3.4.2"}}`
	nodes := func(all ...string) string { return `{"nodes":{"node":[` + strings.Join(all, ",") + `]}}` }
	running := func(mb int) string {
		return fmt.Sprintf(`{"id":"n:1","state":"RUNNING","usedMemoryMB":100,"availMemoryMB":%d,"availableVirtualCores":4}`,
			mb-100)
	}
	for name, c := range map[string]struct {
		info, nodes string
		memory      int
		what, words string
		state       State
	}{
		"enough":      {info, nodes(running(4096), running(4096)), 0, "nodes", "8192 MiB and 8 vcores", Good},
		"no nodes":    {info, `{"nodes":null}`, 0, "nodes", "no NodeManager", Failed},
		"small nodes": {info, nodes(running(1200), running(1200)), 0, "nodes", "no node has more than 1200", Failed},
		"one node":    {info, nodes(running(2000)), 0, "nodes", "at once", Failed},
		"large tasks": {info, nodes(running(8192)), 10_000, "nodes", "a task takes 10000 MiB", Failed},
		"small tasks": {info, nodes(running(8192)), 256, "nodes", "256 MiB", Warning},
		"an unhealthy node": {info, nodes(running(8192),
			`{"id":"sick:1","state":"UNHEALTHY","healthReport":"1/1 local-dirs are bad"}`), 0, "nodes",
			"local-dirs are bad", Warning},
		"it is in standby": {`{"clusterInfo":{"state":"STARTED","haState":"STANDBY"}}`, "", 0, "YARN",
			"no ResourceManager answers", Failed},
		"it starts":      {`{"clusterInfo":{"state":"INITED"}}`, "", 0, "YARN", "INITED", Failed},
		"another server": {`<html>`, "", 0, "YARN", "invalid character", Failed},
		"a login":        {"", "", 0, "YARN", "requires a login", Warning},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case c.info == "":
					w.WriteHeader(http.StatusUnauthorized)
				case strings.HasSuffix(r.URL.Path, "/info"):
					fmt.Fprint(w, c.info)
				default:
					fmt.Fprint(w, c.nodes)
				}
			}))
			defer server.Close()
			var all findings
			v := &checker{Config: Config{Memory: c.memory}, report: all.tell, web: server.Client(),
				conf: hadoopconf.New(map[string]string{
					"yarn.resourcemanager.webapp.address": strings.TrimPrefix(server.URL, "http://")})}
			v.yarn(t.Context())
			all.check(t, c.what, c.state, c.words)
		})
	}
}

func TestOnlyItsOwnJob(t *testing.T) {
	if _, err := Job(&batch.Conf{Job: "crawl"}, nil); err == nil {
		t.Error("it has another job")
	}
}
