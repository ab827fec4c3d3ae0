package experiments

import (
	"fmt"
	"math"
	"slices"
	"time"

	"kumo/internal/lab/sim"
)

// A BalanceCrawl is experiment 5: a web of polite hosts that unequal nodes crawl, with the strategies of a crawl, from
// its first seeds to its end. Hosts are placed whole; nothing goes wrong.
type BalanceCrawl struct {
	Strategies []string // of sim.Strategies; the first is what others are compared with
	Hosts      int
	Pages      int           // of a host, in the mean
	Delay      time.Duration // of a host, in the mean
	Slowness   []float64     // how many times longer than the first node's a node's requests take
	SlowsAt    time.Duration // in other crawls the first node's requests begin to take SlowsBy times as long then
	SlowsBy    float64
}

// A CrawlRow is what a strategy came to.
type CrawlRow struct {
	Strategy string
	Slows    bool // the first node becomes slow
	sim.Work
	Shortest   time.Duration // if all nodes were busy all the time, as fast as they were
	Tail       float64       // between the first node's end and the last's, as a part of the run
	Ratio      float64       // run by the first strategy's, with the same nodes
	Violations []string      // what must not be; none
}

// crawl is a run with a strategy, in which the first node becomes slow or not.
func (b *Balance) crawl(name string, slows bool) CrawlRow {
	c := &b.Crawl
	cfg := sim.LAN()
	cfg.Use(name)
	cfg.Nodes, cfg.Slowness, cfg.Formed, cfg.EqualReach = len(c.Slowness), c.Slowness, true, true
	cfg.Hosts, cfg.Pages, cfg.Delay, cfg.Chunk = c.Hosts, c.Pages, c.Delay, 100
	cfg.FaultTime, cfg.RestLimit = time.Minute, 48*time.Hour
	if slows {
		cfg.SlowsAt, cfg.SlowsBy = c.SlowsAt, c.SlowsBy
	}
	work, wrong := sim.Crawl(cfg, b.Seed)
	row := CrawlRow{Strategy: name, Slows: slows, Work: work}
	for _, v := range wrong {
		row.Violations = append(row.Violations, v.Message)
	}
	pages, pace, first := 0, 0.0, work.Time
	for _, n := range work.Nodes {
		pages += n.Pages
		if n.Busy > 0 {
			pace += float64(n.Pages) / (n.Busy * work.Time.Seconds())
		}
		first = min(first, n.Ended)
	}
	if pace > 0 {
		row.Shortest = time.Duration(float64(pages) / pace * float64(time.Second))
		row.Tail = float64(work.Time-first) / float64(work.Time)
	}
	return row
}

// Pages is how many all nodes have fetched.
func (r *CrawlRow) Pages() (pages int) {
	for _, n := range r.Nodes {
		pages += n.Pages
	}
	return pages
}

// PageMessages are messages a page: between strategies, of links, and in all.
func (r *CrawlRow) PageMessages() (strategies, links, all float64) {
	m, pages := &r.Messages, float64(max(r.Pages(), 1))
	return float64(m.Strategy) / pages, float64(m.Links) / pages, float64(m.Strategy+m.Links+m.Other) / pages
}

// tailAim is the tail that a strategy is to stay below, as a part of the run.
const tailAim = 0.05

func (j *balanceJudge) crawls(rows []CrawlRow) {
	for i := range rows {
		r, first := &rows[i], firstOf(rows, &rows[i])
		with := "with " + r.Strategy
		if r.Slows {
			with += ", and a node that becomes slow,"
		}
		if len(r.Violations) > 0 {
			j.find(5, with+" nothing is lost, and each host is left its delay", false,
				fmt.Sprintf("%d violations", len(r.Violations)), r.Violations[0])
		}
		if r == first {
			continue
		}
		j.find(5, fmt.Sprintf("%s the run is shorter than with %s", with, first.Strategy), r.Ratio < 1,
			fmt.Sprintf("%v by %v, %.3f", r.Time.Round(time.Second), first.Time.Round(time.Second), r.Ratio),
			"nodes wait for links, or for hosts")
		j.find(5, fmt.Sprintf("%s the last node ends within %g %% of the run after the first", with, 100*tailAim),
			r.Tail <= tailAim, fmt.Sprintf("%.1f %%, with %s %.1f %%", 100*r.Tail, first.Strategy, 100*first.Tail),
			"the last hosts are whole, and what moves them takes longer than it would save")
	}
}

// firstOf is the row of the first strategy with the same nodes.
func firstOf(rows []CrawlRow, r *CrawlRow) *CrawlRow {
	return &rows[slices.IndexFunc(rows, func(o CrawlRow) bool { return o.Slows == r.Slows })]
}

func ratios(rows []CrawlRow) {
	for i := range rows {
		rows[i].Ratio = math.NaN()
		if first := firstOf(rows, &rows[i]).Time; first > 0 {
			rows[i].Ratio = float64(rows[i].Time) / float64(first)
		}
	}
}
