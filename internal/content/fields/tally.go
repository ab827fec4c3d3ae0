package fields

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"kumo/internal/base/stats"
)

// A Tally counts what rules find, and what they miss, by rule and host. It has room for 1,000 hosts of a rule and
// 10,000 of all; the pages of others are counted together. Any number of goroutines may use it.
type Tally struct {
	mu     sync.Mutex
	counts map[tallied]*stats.FieldCounts
	hosts  map[string]int // of a rule
}

type tallied struct{ rule, host string }

const (
	maxHosts  = 1000
	maxCounts = 10_000
)

// NewTally returns a tally of nothing.
func NewTally() *Tally {
	return &Tally{counts: map[tallied]*stats.FieldCounts{}, hosts: map[string]int{}}
}

// Restore has a tally go on from what earlier runs have counted.
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

// Add counts what was found on a page of a host.
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

// count notes whether a page had a field. One in objects of which there are none was looked for nowhere.
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

// Counts are the counts by rule and host, in that order.
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

// hasVanished reports whether a field that was there is no longer: it was missed on so many pages in a row as would hardly
// come by chance, if pages before had it as often as they did and those that come are like them.
func hasVanished(m *stats.FieldCount) bool {
	const (
		least  = 5 // pages, with it and then without
		chance = 1e-3
	)
	if m.Last < least || m.Found < least {
		return false
	}
	before := m.Missed - m.Last
	missing := float64(before+1) / float64(m.Found+before+2) // which may well have come next
	return math.Pow(missing, float64(m.Last)) < chance
}
