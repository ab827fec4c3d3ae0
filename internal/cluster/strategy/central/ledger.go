package central

import (
	"slices"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central/hosttable"
	"kumo/internal/cluster/strategy/leader"
)

// A ledger is the leader's table with the changes that are not in the log yet, and the answers that wait for them.
type ledger struct {
	cluster  *clusterState
	out      *output
	hosts    logState
	batches  []*batch
	promised map[strategy.Node]int // granted hosts that are not in the table yet
}

func newLedger(cluster *clusterState, out *output) *ledger {
	return &ledger{cluster: cluster, out: out, hosts: newLogState(cluster.cfg.Key, nil), promised: map[strategy.Node]int{}}
}

// committed sends the answers that waited for the first batch.
func (l *ledger) committed() {
	b := l.batches[0]
	l.batches = l.batches[1:]
	if len(l.batches) == 0 {
		clear(l.promised)
	}
	for _, a := range b.answers {
		l.post(a.to, a.it)
	}
}

// clear drops the changes that are not in the log.
func (l *ledger) clear() {
	l.batches = nil
	clear(l.promised)
}

// Hosts returns the number of hosts in the table.
func (l *ledger) Hosts() int { return l.hosts.table.Len() }

// Count returns the number of hosts that a node owns, grants in progress included.
func (l *ledger) Count(n strategy.Node) int { return l.hosts.table.Count(n) + l.promised[n] }

// Row returns a host's row, changes that are not in the log yet included.
func (l *ledger) Row(host string) hosttable.Row {
	for _, b := range slices.Backward(l.batches) {
		if r, ok := b.rows[host]; ok {
			return r
		}
	}
	r, _ := l.hosts.table.Get(host)
	return r
}

// Set changes a host's row, and sets its time to now.
func (l *ledger) Set(host string, r hosttable.Row) {
	r.Since = uint32(l.cluster.now.Unix())
	l.setRow(host, r)
}

// setRow is Set without the time.
func (l *ledger) setRow(host string, r hosttable.Row) {
	b := l.openBatch()
	if _, there := b.rows[host]; !there {
		b.order = append(b.order, host)
	}
	b.rows[host] = r
	delete(b.reasons, host)
}

// openBatch returns the batch to which changes may be added.
func (l *ledger) openBatch() *batch {
	if n := len(l.batches); n > 0 && !l.batches[n-1].sealed && l.batches[n-1].len() < maxBatch {
		return l.batches[n-1]
	}
	b := &batch{rows: map[string]hosttable.Row{}}
	l.batches = append(l.batches, b)
	return b
}

// Record appends a change to the policy's records, which apply it when it is durable.
func (l *ledger) Record(change []byte) {
	b := l.openBatch()
	b.records = append(b.records, slices.Clone(change))
}

func (l *ledger) post(to strategy.Node, it item) { l.out.post(to, leader.Answer, it) }

// answerWhenDurable sends an answer as soon as all changes of its host are durable, which is usually at once.
func (l *ledger) answerWhenDurable(to strategy.Node, it item) {
	for _, b := range slices.Backward(l.batches) {
		if _, there := b.rows[it.host]; there {
			b.answers = append(b.answers, answer{to, it})
			return
		}
	}
	l.post(to, it)
}
