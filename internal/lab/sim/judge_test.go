package sim

import (
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
)

// TestWhatIsForgottenTwice ends a node when it has forgotten a host that it has handed over, and its disk does not know
// yet: it forgets the host once more. That is judged as the first time was, and no better.
func TestWhatIsForgottenTwice(t *testing.T) {
	for _, handed := range []bool{true, false} {
		cfg := small()
		cfg.Formed, cfg.FaultEvery = true, -1
		w := newWorld(cfg.withDefaults(), 1, -1, false)
		w.start()
		var host int32
		holds := func() bool {
			p := w.machines[0].proc
			if p == nil {
				return false
			}
			for _, host = range p.state.sortedHosts() {
				if p.state.hosts[host].waiting != 0 {
					return true
				}
			}
			return false
		}
		if w.k.run(time.Minute, holds); !holds() {
			t.Fatal("the first node has nothing")
		}
		p := w.machines[0].proc
		p.commit()
		if handed {
			w.recordExport(p, func(name string) (to strategy.Node) {
				if name == w.web.hosts[host].name {
					to = w.machines[1].node
				}
				return to
			})
		}
		p.enter(&entry{kind: entryForget, hosts: []int32{host}, handedOver: []uint64{w.checkForget(p, host)}})
		if (len(w.violations) == 0) != handed {
			t.Fatalf("handed over: %v; %v", handed, w.violations)
		}
		w.violations = nil
		p.close()
		w.machines[0].proc = nil
		w.truncateJournal(p.journal, p.journal.durable)
		w.begin(w.machines[0])
		if p = w.machines[0].proc; p.state.hosts[host] == nil {
			t.Fatal("the disk knows that the host is forgotten")
		}
		if w.checkForget(p, host); (len(w.violations) == 0) != handed {
			t.Errorf("handed over: %v; %v", handed, w.violations)
		}
	}
}
