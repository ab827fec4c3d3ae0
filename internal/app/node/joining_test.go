package node_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/cluster/desired"
)

// TestTheFirstHostsWaitForNodesThatCome: a node waits for the crawl's start and becomes a member long after the others.
// It still gets an equal share of hosts. A dead node is not waited for forever.
func TestTheFirstHostsWaitForNodesThatCome(t *testing.T) {
	for _, dies := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 60, 20)
			withHub(w)
			w.apart = nil
			key := node.WaitingPrefix + "c~1"
			report, err := json.Marshal(node.Report{Name: "c", State: desired.Waiting, Clock: time.Now()})
			must(t, err)
			rev, err := w.control.Registry.Put(t.Context(), key, report, 0)
			must(t, err)
			must(t, w.control.Start(t.Context(), nil, w.seeds(60)))
			nodes := together(t, w, "a", "b")
			time.Sleep(15 * time.Second)
			if n := w.count(); n > 0 {
				t.Fatalf("%d pages are fetched, and the third has not come", n)
			}
			if dies {
				time.Sleep(25 * time.Second)
				if w.count() == 0 {
					t.Error("a node that died is waited for")
				}
				ends(t, nil, nodes...)
				return
			}
			c := w.start("c", "1")
			eventually(t, "it is a member", c.router.Member)
			must(t, w.control.Registry.Delete(t.Context(), key, rev))
			eventually(t, "it has hosts", func() bool { return c.figures().Hosts >= 15 })
			for _, x := range nodes {
				if n := x.figures().Hosts; n > 26 {
					t.Errorf("%s has %d hosts of 60", x.id.Name, n)
				}
			}
			ends(t, nil, append(nodes, c)...)
			w.check(1)
		})
	}
}
