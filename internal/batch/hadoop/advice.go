package hadoop

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/base/advice"
	"kumo/internal/batch"
)

// withAdvice adds advice to errors of Hadoop or its tasks, recognized by their text.
func withAdvice(err error) error {
	has := func(any ...string) bool {
		for _, words := range any {
			if strings.Contains(err.Error(), words) {
				return true
			}
		}
		return false
	}
	switch {
	case has(syscall.ENOSPC.Error(), "No space left on device"):
		return fmt.Errorf("%w (%w)", err, syscall.ENOSPC)
	case has("max container capability", "InvalidResourceRequestException"):
		return advice.With(err, "no NodeManager offers containers of this size: request less "+
			"(mapreduce.map.memory.mb, mapreduce.reduce.memory.mb, yarn.app.mapreduce.am.resource.mb in mapred-site.xml), "+
			"or offer more (yarn.nodemanager.resource.memory-mb in yarn-site.xml); run kumo doctor hadoop")
	case has("Java heap space", "GC overhead limit", "beyond physical memory limits",
		"beyond the 'PHYSICAL' memory limit"):
		return advice.With(err, "the task's container is too small: raise mapreduce.map.memory.mb and "+
			"mapreduce.reduce.memory.mb in mapred-site.xml to 1024 or more; run kumo doctor hadoop")
	}
	return err
}

// A queueWatch reports why YARN does not start a job. Hadoop's client itself waits silently, without a limit.
type queueWatch struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

const (
	queuePatience = 35 * time.Second
	queueInterval = time.Minute // each query starts a JVM
)

// watchQueue watches the job whose id is sent on queued.
func (j *job) watchQueue(ctx context.Context, queued <-chan string) *queueWatch {
	ctx, cancel := context.WithCancel(ctx)
	w := &queueWatch{cancel: cancel}
	w.done.Go(func() {
		var id string
		select {
		case <-ctx.Done():
			return
		case id = <-queued:
		}
		for pause := queuePatience; place.Sleep(ctx, pause) == nil; pause = queueInterval {
			out, err := j.cfg.Client.output(ctx, "yarn", "application", "-status", applicationOf(id))
			if why := queueReason(out); err == nil && why != "" && j.Progress != nil {
				p := batch.Progress{Status: why}
				if j.Job.Reduces() {
					p.Reduces = j.Reducers
				}
				j.Progress(p)
			}
		}
	})
	return w
}

func (w *queueWatch) stop() {
	w.cancel()
	w.done.Wait()
}

// diagnostics returns YARN's diagnostics of an application, or "".
func (j *job) diagnostics(ctx context.Context, job string) string {
	out, err := j.cfg.Client.output(ctx, "yarn", "application", "-status", applicationOf(job))
	if m := diagnosticLine.FindStringSubmatch(out); err == nil && m != nil {
		return strings.TrimSpace(m[1])
	}
	return ""
}

func applicationOf(job string) string { return "application" + strings.TrimPrefix(job, "job") }

var (
	acceptedLine   = regexp.MustCompile(`(?m)^\s*State : (?:NEW|NEW_SAVING|SUBMITTED|ACCEPTED)\s*$`)
	diagnosticLine = regexp.MustCompile(`(?m)^\s*Diagnostics : (?:\[[^]]*\] )?(.*)$`)
)

// queueReason parses the output of "yarn application -status" and returns why an application was not started; "" if it
// was.
func queueReason(out string) string {
	if !acceptedLine.MatchString(out) {
		return ""
	}
	why := ""
	if m := diagnosticLine.FindStringSubmatch(out); m != nil {
		why, _, _ = strings.Cut(m[1], "  Details :")
		why = strings.TrimPrefix(why, "Application is added to the scheduler and is not yet activated. ")
	}
	if strings.Contains(why, "cluster resource is empty") {
		return "waiting for YARN: no NodeManager is alive (see yarn node -list -all)"
	}
	return strings.TrimSpace("waiting for YARN to start it: " + strings.TrimSpace(why))
}
