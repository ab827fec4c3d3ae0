package quorum

import (
	"testing"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// byCount gives all hosts to the last member.
type byCount struct{ strategy.Placer }

type lastMember strategy.Node

func (byCount) Place(members []strategy.Member) strategy.View {
	return lastMember(members[len(members)-1].Node)
}

func (v lastMember) Owner(string) (strategy.Node, strategy.State) {
	return strategy.Node(v), strategy.Owned
}

// TestANodeUsesHostsOnceItHasThem: hosts become b~1's under an epoch. It uses them only when all expected transfers are
// complete, and only while its lease is valid.
func TestANodeUsesHostsOnceItHasThem(t *testing.T) {
	now := time.Unix(1e9, 0)
	env := &env{self: "b~1", now: now, table: (&Table{Epoch: 1, Finalized: 1, Members: []strategy.Member{{Node: "a~1"}}}).
		with(strategy.Member{Node: "b~1"})}
	o := &ownership{env: env, placer: byCount{}, places: map[uint64]placement{}, view: &View{self: "b~1"}}
	if o.extend(now.Add(time.Second)); len(env.actions) > 0 {
		t.Error("a view is published before the node is a member")
	}
	o.start()
	o.newEpoch()
	o.publish()
	if owner, _ := o.view.Owner("h"); owner != "b~1" || o.view.MayFetch("h", now) || o.known() {
		t.Errorf("%s owns the host; b~1 may use it before the transfers are here: %v", owner, o.view.MayFetch("h", now))
	}
	if to := o.destination(2, "a~1")("h"); to != "b~1" || o.destination(1, "a~1")("h") != "" {
		t.Errorf("a~1 transfers the host to %q", to)
	}
	for range 2 {
		o.complete()
	}
	if len(actions[member.Publish](env)) != 2 || !o.view.MayFetch("h", now) || o.view.MayFetch("h", now.Add(time.Second)) ||
		!o.known() {
		t.Error("it may not use the host, or may without a lease")
	}
	env.table = env.table.end()
	if o.epochFinalized(); o.placed(1) || !o.placed(2) {
		t.Error("placements of earlier epochs are retained")
	}
	if o.end(); o.view.MayFetch("h", now) || o.view.Epoch() != 2 {
		t.Error("it may use hosts after its end")
	}
}

// TestAStrategyAcknowledgesTransfers: if the strategy is no Placer, the epoch is not finished before that.
func TestAStrategyAcknowledgesTransfers(t *testing.T) {
	env := &env{self: "a~1", table: &Table{Epoch: 2, Finalized: 1, Members: []strategy.Member{{Node: "a~1"}}}}
	o := &ownership{env: env, places: map[uint64]placement{}, view: &View{}}
	o.start()
	o.newEpoch()
	o.complete()
	if whole := actions[member.AllReceived](env); len(whole) != 1 || o.known() {
		t.Errorf("%v is reported; known %v", whole, o.known())
	}
	if o.acknowledge(2); !o.known() {
		t.Error("the strategy's acknowledgement is ignored")
	}
}

// TestTakeoversFollowTheTable recovers a dead node, and cancels when another node becomes its takeover node.
func TestTakeoversFollowTheTable(t *testing.T) {
	table := &Table{Epoch: 2, Finalized: 1, Members: []strategy.Member{{Node: "a~1"}}, Failed: []strategy.Node{"dead~1"}}
	env := &env{self: "a~1", table: table}
	o := takeovers{env: env, nodes: map[strategy.Node]*takeover{}}
	o.newEpoch()
	o.recovered(member.Recovered{Node: "dead~1", Received: []member.Transfer{{Epoch: 1}}})
	if folds := actions[member.Recover](env); len(folds) != 1 || !o.nodes["dead~1"].ready {
		t.Fatalf("%v are recovered", folds)
	}
	for i := 0; env.table.takeoverNode("dead~1") == "a~1"; i++ {
		env.table = env.table.with(strategy.Member{Node: node(i)})
	}
	o.newEpoch()
	if unfolds := actions[member.CancelRecovery](env); len(unfolds) != 1 || len(o.nodes) > 0 {
		t.Errorf("%v are abandoned", unfolds)
	}
	o.recovered(member.Recovered{Node: "dead~1"})
	o.released("dead~1")
}
