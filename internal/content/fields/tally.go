package fields

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"kumo/internal/base/stats"
)

// A Tally counts found and missed fields by rule and host. It holds up to 1,000 hosts of a rule and 10,000 in total;
// the pages of other hosts are counted together. It is safe for concurrent use.
type Tally struct {
	mu     sync.Mutex
	counts map[tallied]*stats.FieldCounts
	hosts  map[string]int // number of hosts of a rule
}

type tallied struct{ rule, host string }

const (
	maxHosts  = 1000
	maxCounts = 10_000
)

// NewTally returns an empty tally.
func NewTally() *Tally {
	return &Tally{counts: map[tallied]*stats.FieldCounts{}, hosts: map[string]int{}}
}

// Restore adds the counts of earlier runs.
func (t *Tally) Restore(before []stats.FieldCounts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range before {
		c.Fields = slices.Clone(c.Fields)
		if t.counts[tallied{c.Rule, c.Host}] == nil {
			t.hosts[c.Rule]++
		}
		t.counts[tallied{c.Rule, c.Host}] = &c
	}
}

// Add counts the fields of a page.
func (t *Tally) Add(host string, res *Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range res.Rules {
		r := &res.Rules[i]
		c := t.entry(r.Rule, host)
		c.Pages++
		c.Records += int64(r.Records)
		c.Incomplete += int64(r.Lacking)
		for _, f := range r.Fields {
			count(c, &f)
		}
	}
}

func (t *Tally) entry(rule, host string) *stats.FieldCounts {
	c := t.counts[tallied{rule, host}]
	if c == nil && (t.hosts[rule] >= maxHosts || len(t.counts) >= maxCounts) {
		host = stats.OtherHosts
		c = t.counts[tallied{rule, host}]
	}
	if c == nil {
		c = &stats.FieldCounts{Rule: rule, Host: host}
		t.counts[tallied{rule, host}] = c
		t.hosts[rule]++
	}
	return c
}

// count counts whether a page had a field. A field of objects that do not exist is not counted.
func count(c *stats.FieldCounts, f *FieldResult) {
	if f.Found+f.Missed == 0 {
		return
	}
	i := slices.IndexFunc(c.Fields, func(m stats.FieldCount) bool { return m.Field == f.Path })
	if i < 0 {
		i = len(c.Fields)
		c.Fields = append(c.Fields, stats.FieldCount{Field: f.Path})
	}
	m := &c.Fields[i]
	if f.Found > 0 {
		m.Found++
		m.Last = 0
		return
	}
	m.Missed++
	m.Last++
}

// Counts returns the counts, sorted by rule and host.
func (t *Tally) Counts() (all []stats.FieldCounts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.counts {
		one := *c
		one.Fields = slices.Clone(c.Fields)
		for i := range one.Fields {
			one.Fields[i].Changed = hasVanished(&one.Fields[i])
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b stats.FieldCounts) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Host, b.Host))
	})
	return all
}

// hasVanished reports whether a field no longer exists: it was missed on so many consecutive pages that chance is
// unlikely, if the field is as frequent on them as on the pages before.
func hasVanished(m *stats.FieldCount) bool {
	const (
		least  = 5 // pages with the field, and then pages without it
		chance = 1e-3
	)
	if m.Last < least || m.Found < least {
		return false
	}
	before := m.Missed - m.Last
	missing := float64(before+1) / float64(m.Found+before+2) // estimated probability of a miss
	return math.Pow(missing, float64(m.Last)) < chance
}
