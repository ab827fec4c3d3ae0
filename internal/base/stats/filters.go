package stats

import (
	"maps"
	"slices"
	"strings"
)

// FilterCounts are the answers of a filter program to questions about links, requests and records.
type FilterCounts struct {
	Filter string                  `json:"filter"` // its command line
	Points map[string]*FilterPoint `json:"points"`
	// restarts of the filter's processes by reason, and the last error
	Crashed  int64  `json:"crashed"`
	Late     int64  `json:"timed_out"`
	Nonsense int64  `json:"nonsense"`
	Trouble  string `json:"last_trouble,omitempty"`
}

// A FilterPoint counts the questions at one hook. Unanswered questions got the default answer; if the default is to
// drop, they also count as dropped.
type FilterPoint struct {
	Asked      int64 `json:"asked"`
	Dropped    int64 `json:"dropped"`
	Changed    int64 `json:"changed"`
	Unanswered int64 `json:"unanswered"`
}

// Restarts returns the number of restarts.
func (c *FilterCounts) Restarts() int64 { return c.Crashed + c.Late + c.Nonsense }

// Clone returns a deep copy.
func (c *FilterCounts) Clone() FilterCounts {
	d := *c
	d.Points = make(map[string]*FilterPoint, len(c.Points))
	for name, p := range c.Points {
		q := *p
		d.Points[name] = &q
	}
	return d
}

// Add adds the counts of another run.
func (c *FilterCounts) Add(was FilterCounts) {
	for name, p := range was.Points {
		if p == nil {
			continue
		}
		if c.Points[name] == nil {
			c.Points[name] = &FilterPoint{}
		}
		q := c.Points[name]
		q.Asked, q.Dropped, q.Changed = q.Asked+p.Asked, q.Dropped+p.Dropped, q.Changed+p.Changed
		q.Unanswered += p.Unanswered
	}
	c.Crashed, c.Late, c.Nonsense = c.Crashed+was.Crashed, c.Late+was.Late, c.Nonsense+was.Nonsense
	if c.Trouble == "" {
		c.Trouble = was.Trouble
	}
}

// printFilters prints the answers and the errors of each filter.
func (r *Report) printFilters(row func(string, string, ...any)) {
	for _, f := range r.Filters {
		name := "filter"
		row(name, "%s: %s", f.Filter, f.Summary())
		if n := f.Restarts(); n > 0 {
			row("", "restarted %s: %s", Count(n, "times"), f.Trouble)
		}
	}
}

// Summary returns the counts as a line of text.
func (c *FilterCounts) Summary() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c.Points)) {
		p := c.Points[name]
		part := Count(p.Asked, name+"s") + " asked"
		for _, n := range []struct {
			n    int64
			what string
		}{{p.Dropped, "dropped"}, {p.Changed, "changed"}, {p.Unanswered, "without an answer"}} {
			if n.n > 0 {
				part += ", " + Count(n.n, n.what)
			}
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "nothing asked"
	}
	return strings.Join(parts, "; ")
}
