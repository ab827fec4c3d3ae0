package nodes

import (
	"encoding/json"
	"testing"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// A listener starts over after a period without any reports. A node that was silent before only counts as heard again
// after a new report.
func TestAListenerThatWasCutOff(t *testing.T) {
	const beat = time.Second
	var l listener
	now := time.Unix(1e9, 0)
	clocks := map[strategy.Node]time.Time{"alive~1": now, "dead~1": now}
	hear := func(d time.Duration) {
		now = now.Add(d)
		clocks["alive~1"] = now
		leases := map[strategy.Node]quorum.Lease{}
		for n, clock := range clocks {
			report, err := json.Marshal(node.Report{Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			leases[n] = quorum.Lease{Report: report}
		}
		l.hear(leases, now, beat)
	}
	// listen reports whether the listener finally is ready. The listener must never believe that it hears the dead node
	// again.
	listen := func() (knows bool) {
		for range 10 {
			if hear(beat); !l.isReady(now, beat) {
				continue
			}
			if knows = true; !l.silent("dead~1", now, beat) {
				t.Error("a dead node is heard")
			}
			if l.silent("alive~1", now, beat) {
				t.Error("a living node is silent")
			}
		}
		return knows
	}
	hear(0)
	if l.isReady(now, beat) {
		t.Error("who has just begun to listen knows who is silent")
	}
	if !listen() {
		t.Error("who has listened for long does not know who is silent")
	}
	hear(10 * beat)
	if l.isReady(now, beat) {
		t.Error("who was cut off knows who is silent")
	}
	if !listen() {
		t.Error("who was cut off never knows again who is silent")
	}
}
