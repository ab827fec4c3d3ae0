package meshnode

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"kumo/internal/base/stats"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/mesh"
)

// Reports of all nodes are saved one at a time, and the last one is saved last.
func TestReportsAreSavedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saved []int64
		saving, free := 0, make(chan struct{})
		l := savingLoop(t, func(all *stats.Report) {
			if saving++; saving > 1 {
				t.Error("two reports are saved at once")
			}
			<-free
			saving--
			saved = append(saved, all.Pages)
		})
		for i := range 5 {
			l.saveResults(mesh.Results{Nodes: 3, Data: fmt.Appendf(nil, `{"pages":%d}`, i)})
			synctest.Wait()
		}
		close(free)
		synctest.Wait()
		if !slices.Equal(saved, []int64{0, 4}) {
			t.Errorf("saved: %v, want the first and the last", saved)
		}
	})
}

// When nodes have ended, reports without them replace no better one, until the crawl continues.
func TestAReportOfFewerNodesIsNotSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saved []int64
		l := savingLoop(t, func(all *stats.Report) { saved = append(saved, all.Pages) })
		save := func(nodes int, pages int64) {
			l.saveResults(mesh.Results{Nodes: nodes, Data: fmt.Appendf(nil, `{"pages":%d}`, pages)})
			synctest.Wait()
		}
		save(2, 10)
		save(3, 15)
		save(3, 16)
		save(2, 11)
		save(1, 5)
		l.results.reset()
		save(2, 20)
		if !slices.Equal(saved, []int64{10, 15, 16, 20}) {
			t.Errorf("saved: %v", saved)
		}
	})
}

// savingLoop returns a loop that only saves reports.
func savingLoop(t *testing.T, save func(*stats.Report)) *loop {
	cfg, tasks, w := &Config{SaveReport: save}, &tasks{}, &recordWatcher{}
	tasks.begin(t.Context())
	w.known.Store(&knownRecord{record: desired.Record{State: desired.Done}})
	return &loop{cfg: cfg, tasks: tasks, watcher: w, results: &resultSaver{cfg: cfg, tasks: tasks}}
}
