package inspect

import (
	"fmt"

	"kumo/internal/base/stats"
)

// Measures are the four measures by which the DSpider paper compares crawlers. Rates are of the last seconds.
type Measures struct {
	Speed         float64 `json:"speed"`        // pages per second, all nodes
	SpeedBytes    float64 `json:"speed_bytes"`  // bytes per second, all nodes
	ResourceUse   float64 `json:"srcuse"`       // pages per second, mean of the nodes that crawl
	ResourceBytes float64 `json:"srcuse_bytes"` // bytes per second, mean of the nodes that crawl
	Duplicates    int64   `json:"duplicates"`   // pages fetched again
	Duplicate     float64 `json:"duplicate"`    // Duplicates as a share of all pages, 0 to 1
	// Host requests: requests of nodes to the control unit about a host, and its answers. Nil: no control unit.
	Communicate *float64 `json:"communicate,omitempty"` // per second
	Requests    *int64   `json:"host_requests,omitempty"`
}

// Measure sets the measures, from the nodes, the totals and the departed nodes.
func (c *Cluster) Measure() {
	crawling := 0
	perSecond, requests, leader := 0.0, int64(0), false
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Is == NodeMember || n.Is == NodeLeaving {
			crawling++
		}
		if n.Facts != nil {
			leader, requests = true, requests+n.Requests
			if n.Is != NodeDead {
				perSecond += n.PerSecond
			}
		}
	}
	if g := c.Gathered; g != nil {
		crawling = g.Nodes
	}
	if c.Measures = nil; crawling == 0 {
		return
	}
	m := &Measures{Speed: c.Totals.Rate, SpeedBytes: c.Totals.ByteRate, ResourceUse: c.Totals.Rate / float64(crawling),
		ResourceBytes: c.Totals.ByteRate / float64(crawling), Duplicates: c.Totals.Duplicates + c.Gone.Again}
	if c.Totals.Pages > 0 {
		m.Duplicate = float64(m.Duplicates) / float64(c.Totals.Pages)
	}
	if leader {
		m.Communicate, m.Requests = &perSecond, &requests
	}
	c.Measures = m
}

// String returns the measures in one line.
func (m *Measures) String() string {
	rate := func(pages, bytes float64) string {
		if bytes == 0 { // unknown in a mesh
			return fmt.Sprintf("%.1f pages/s", pages)
		}
		return fmt.Sprintf("%.1f pages/s (%s/s)", pages, stats.Bytes(int64(bytes)))
	}
	line := fmt.Sprintf("speed %s, srcuse %s a node, duplicate %d (%.1f per 10,000)", rate(m.Speed, m.SpeedBytes),
		rate(m.ResourceUse, m.ResourceBytes), m.Duplicates, 1e4*m.Duplicate)
	if m.Communicate != nil {
		line += fmt.Sprintf(", communicate %.1f host requests/s (%d)", *m.Communicate, *m.Requests)
	}
	return line
}
