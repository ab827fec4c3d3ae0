package hadoop

import (
	"fmt"
	"strings"
	"testing"
)

func readAll(text string) (s status) {
	for line := range strings.Lines(text) {
		s.read(strings.TrimRight(line, "\n"))
	}
	return s
}

func TestWhatTheClientPrints(t *testing.T) {
	s := readAll(`packageJobJar: [/tmp/hadoop-unjar1/] [] /tmp/streamjob1.jar tmpDir=null
26/11/23 02:57:48 INFO mapreduce.JobSubmitter: number of splits:20
26/11/23 02:57:49 INFO impl.YarnClientImpl: Submitted application application_1795402650629_0001
26/11/23 02:57:49 INFO mapreduce.Job: Running job: job_1795402650629_0001
26/11/23 02:57:54 INFO mapreduce.Job:  map 0% reduce 0%
26/11/23 02:57:59 INFO mapreduce.Job:  map 50% reduce 10%
`)
	if s.id != "job_1795402650629_0001" || s.maps != 20 || s.mapShare != 0.5 || s.reduceShare != 0.1 || s.ended {
		t.Errorf("%+v", s)
	}
	for _, c := range []struct {
		text      string
		succeeded bool
		failed    int
		why       string
	}{
		{"INFO mapreduce.Job: Job job_1_0001 completed successfully\n\t\tFailed map tasks=2\n\t\tFailed reduce tasks=1\n",
			true, 3, ""},
		{"INFO mapreduce.Job: Task Id : attempt_1_0001_m_000000_0, Status : FAILED\n" +
			"Container [pid=1] is running beyond the 'PHYSICAL' memory limit.\n" +
			"INFO mapreduce.Job: Job job_1_0001 failed with state FAILED due to: Task failed task_1\n", false, 1,
			"Container [pid=1] is running beyond the 'PHYSICAL' memory limit."},
		{"Job job_1_0001 failed with state KILLED due to: Job was killed by its user\n", false, 0,
			"Job was killed by its user"},
		{"Job: job_1_0001\nNumber of maps: 2\nNumber of reduces: 2\nmap() completion: 1.0\nreduce() completion: 1.0\nJob " +
			"state: SUCCEEDED\nretired: false\nreason for failure: \n\t\tFailed reduce tasks=4\n", true, 4, ""},
		{"Job: job_1_0001\nJob state: FAILED\nreason for failure: Task failed\n", false, 0, "Task failed"},
	} {
		s := readAll(c.text)
		if !s.ended || s.succeeded != c.succeeded || s.failed() != c.failed || s.why != c.why {
			t.Errorf("%q is %+v", c.text, s)
		}
	}
	s = readAll("Job: job_1_0001\nNumber of maps: 4\nmap() completion: 0.25\nreduce() completion: 0.0\nJob state: " +
		"RUNNING\nreason for failure: \n")
	if s.ended || s.maps != 4 || s.mapShare != 0.25 {
		t.Errorf("a job that runs: %+v", s)
	}
	s = readAll("ERROR streaming.StreamJob: Error Launching job : Permission denied: user=ann\n")
	if s.id != "" || !strings.Contains(s.why, "Permission denied") {
		t.Errorf("a job that was not taken: %+v", s)
	}
}

func TestApplications(t *testing.T) {
	const head = "Total number of applications (application-types: [], states: [] and tags: [kumo-x]):1\n" +
		"                Application-Id\t    Application-Name\t    Application-Type\t      User\t     Queue\t             " +
		"State\n"
	const line = "application_17_0003\t          kumo crawl\t           MAPREDUCE\t      root\t   default\t           " +
		"%s\t  5%%\n"
	for state, want := range map[string]appState{"RUNNING\t         UNDEFINED": appRunning, "ACCEPTED\t  UNDEFINED": appRunning,
		"FINISHED\t SUCCEEDED": appSucceeded, "FINISHED\t  FAILED": appEnded, "KILLED\t KILLED": appEnded,
		"FAILED\t FAILED": appEnded} {
		if id, got := lastApplication(head + fmt.Sprintf(line, state)); id != "job_17_0003" || got != want {
			t.Errorf("%s: %q, %d", state, id, got)
		}
	}
	if id, _ := lastApplication(head); id != "" {
		t.Errorf("none: %q", id)
	}
}

func TestAJVMsHeapLeavesRoom(t *testing.T) {
	for _, c := range [][3]string{
		{"-Xmx200m -XX:+UseSerialGC", "", "-XX:+UseSerialGC -Xmx512m"},
		{"", "-Dx=y -Xmx200m", "-Dx=y -Xmx512m"},
		{"", "", "-Xmx512m"},
	} {
		if got := javaOpts(c[0], c[1], 512); got != c[2] {
			t.Errorf("%q and %q: %q", c[0], c[1], got)
		}
	}
}
