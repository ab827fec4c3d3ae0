package hadoop

import (
	"errors"
	"strings"
	"testing"

	"kumo/internal/base/advice"
	"kumo/internal/base/vfs"
)

// Messages of Hadoop 3.4.2.
func TestWhatHadoopSaysIsAnsweredWithAdvice(t *testing.T) {
	for says, want := range map[string]string{
		"The required MAP capability is more than the supported max container capability in the cluster. Killing the Job. " +
			"mapResourceRequest: <memory:5000, vCores:1> maxContainerCapability:<memory:3072, vCores:4>": "offers",
		"Error Launching job : org.apache.hadoop.yarn.exceptions.InvalidResourceRequestException: Invalid resource " +
			"request! Cannot allocate containers": "offers",
		"Error: Java heap space": "too small",
		"Container [pid=1,containerID=container_1] is running 20MB beyond the 'PHYSICAL' memory limit.": "too small",
		"Error: java.lang.RuntimeException: PipeMapRed":                                                 "",
	} {
		if got := advice.Of(withAdvice(errors.New(says))); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q", says, got)
		}
	}
	if err := withAdvice(errors.New("m-00001: write hdfs://h/x: HDFS is full: no space left on device (4 attempts failed)")); !vfs.IsFull(err) {
		t.Errorf("%v is not known for a full disk", err)
	}
}

func TestWhyAJobIsNotBegun(t *testing.T) {
	const before = "Application Report : \n\tApplication-Id : application_1_0038\n\tState : "
	const added = "[Mon Nov 23 06:31:12 +0000 2026] Application is added to the scheduler and is not yet activated. "
	for says, want := range map[string]string{
		before + "ACCEPTED\n\tFinal-State : UNDEFINED\n\tDiagnostics : " + added + "Skipping AM assignment as cluster " +
			"resource is empty.  Details : AM Partition = <DEFAULT_PARTITION>; \n": "no NodeManager is alive",
		before + "ACCEPTED\n\tDiagnostics : " + added + "Queue's AM resource limit exceeded.  Details : x\n": "to start it: " +
			"Queue's AM resource limit exceeded.",
		before + "RUNNING\n\tDiagnostics : \n": "",
	} {
		if got := queueReason(says); !strings.HasSuffix(strings.TrimSuffix(got, " (see yarn node -list -all)"), want) ||
			(got == "") != (want == "") {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
