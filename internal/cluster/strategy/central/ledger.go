package central

import (
	"slices"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central/hosttable"
	"kumo/internal/cluster/strategy/leader"
)

// A ledger is the leader's table with the changes that its log does not have yet, and the answers that wait for them.
type ledger struct {
	cluster  *clusterState
	out      *output
	hosts    logState
	batches  []*batch
	promised map[strategy.Node]int // hosts that are granted and not in the table yet
}

func newLedger(around *clusterState, out *output) *ledger {
	return &ledger{cluster: around, out: out, hosts: newHosts(around.cfg.Key, nil), promised: map[strategy.Node]int{}}
}

// committed answers what waited for the first batch to be durable.
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

// clear forgets what the log does not have.
func (l *ledger) clear() {
	l.batches = nil
	clear(l.promised)
}

// Hosts is how many hosts the table has, and Count how many of them are a node's, with those that it is granted.
func (l *ledger) Hosts() int { return l.hosts.table.Len() }

// Count says how many hosts are a node's, with those that it is being granted.
func (l *ledger) Count(n strategy.Node) int { return l.hosts.table.Count(n) + l.promised[n] }

// Row is what the table will say of a host when all is written.
func (l *ledger) Row(host string) hosttable.Row {
	for _, b := range slices.Backward(l.batches) {
		if r, ok := b.rows[host]; ok {
			return r
		}
	}
	r, _ := l.hosts.table.Get(host)
	return r
}

// Set changes a host's row.
func (l *ledger) Set(host string, r hosttable.Row) {
	r.Since = uint32(l.cluster.now.Unix())
	l.setRow(host, r)
}

// setRow is Set, but for the time.
func (l *ledger) setRow(host string, r hosttable.Row) {
	b := l.openBatch()
	if _, there := b.rows[host]; !there {
		b.order = append(b.order, host)
	}
	b.rows[host] = r
	delete(b.reasons, host)
}

// openBatch is the batch to which changes may be added.
func (l *ledger) openBatch() *batch {
	if n := len(l.batches); n > 0 && !l.batches[n-1].sealed && l.batches[n-1].len() < maxBatch {
		return l.batches[n-1]
	}
	b := &batch{rows: map[string]hosttable.Row{}}
	l.batches = append(l.batches, b)
	return b
}

// Record writes a change of the policy's Records, which applies it when it is durable.
func (l *ledger) Record(change []byte) {
	b := l.openBatch()
	b.records = append(b.records, slices.Clone(change))
}

func (l *ledger) post(to strategy.Node, it item) { l.out.post(to, leader.Answer, it) }

// answerWhenDurable answers when all that is said of the host is durable: at once, mostly.
func (l *ledger) answerWhenDurable(to strategy.Node, it item) {
	for _, b := range slices.Backward(l.batches) {
		if _, there := b.rows[it.host]; there {
			b.answers = append(b.answers, answer{to, it})
			return
		}
	}
	l.post(to, it)
}
