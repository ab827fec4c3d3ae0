package stream

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/batch"
	"kumo/internal/batch/collection"
)

func TestCountersAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := NewReporter(&out, &batch.Conf{Job: "merge", Collections: []*collection.Collection{{Code: "de"}}})
		task := batch.NewTask(0, 1, 0, r.Status)
		stop := r.Watch(task.Counters())
		task.Count("de", "pages, all", 2)
		synctest.Wait()
		task.Status("half\nway " + strings.Repeat("x", 1000))
		time.Sleep(ReportInterval + time.Second) // virtual time
		task.Count("de", "pages, all", 3)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		want := []string{"reporter:status:half way " + strings.Repeat("x", maxStatus-9),
			"reporter:counter:de,pages; all,2", "reporter:counter:de,pages; all,3", ""}
		if got := strings.Split(out.String(), "\n"); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

// Hadoop sums the counters that all tasks of a job report, each with other words.
func TestTheCountersOfAllTasksAreFew(t *testing.T) {
	conf := &batch.Conf{Job: "merge"}
	for i := range 200 {
		conf.Collections = append(conf.Collections, &collection.Collection{Code: fmt.Sprint("c", i)})
	}
	names, sums := map[string]int{}, map[string]int{}
	for task := range 20 {
		var out bytes.Buffer
		r := NewReporter(&out, conf)
		var counters batch.Counters
		for i := range conf.Collections {
			group := fmt.Sprint("c", (i+task)%len(conf.Collections))
			for _, kind := range []string{"charset ", "language ", "failed: ", "apart: "} {
				counters.Add(group, fmt.Sprint(kind, task, " ", i), 1)
			}
			counters.Add(group, "pages", 1)
			if i%10 == 0 {
				if err := r.Counters(&counters); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := r.Counters(&counters); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			fields := strings.Split(strings.TrimSpace(line), ",")
			var n int
			if _, err := fmt.Sscan(fields[2], &n); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			names[fields[0]+fields[1]] += n
			sums[fields[1]] += n
		}
	}
	if len(names) > 20 {
		t.Errorf("%d counters", len(names))
	}
	for _, kind := range []string{"charset", "language", "failed", "apart", "pages"} {
		if sums[kind] != 20*200 {
			t.Errorf("%s: %d in all, not %d", kind, sums[kind], 20*200)
		}
	}
}

func TestATaskTellsFewCountersWhateverIsCounted(t *testing.T) {
	var out bytes.Buffer
	r := NewReporter(&out, &batch.Conf{Job: "merge"})
	var counters batch.Counters
	for i := range 1000 {
		counters.Add("merge", fmt.Sprint("odd ", i), 1)
		if i%100 == 0 {
			if err := r.Counters(&counters); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.Counters(&counters); err != nil {
		t.Fatal(err)
	}
	names, sum := map[string]bool{}, 0
	for line := range strings.Lines(out.String()) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		var n int
		if _, err := fmt.Sscan(fields[2], &n); err != nil {
			t.Fatal(err)
		}
		names[fields[1]] = true
		sum += n
	}
	if len(names) != maxCounters || sum != 1000 {
		t.Errorf("%d counters, %d in all", len(names), sum)
	}
}
