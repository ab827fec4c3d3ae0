package inspect

import (
	"math"
	"testing"
)

func TestMeasures(t *testing.T) {
	c := &Cluster{Gone: Gone{Again: 1}, Nodes: []Node{
		{Is: NodeMember, Load: Load{Pages: 600, Rate: 20, ByteRate: 4000, Duplicates: 5},
			Facts: &Facts{Leads: true, Requests: 40, PerSecond: 4}},
		{Is: NodeMember, Load: Load{Pages: 400, Rate: 10, ByteRate: 2000}, Facts: &Facts{Requests: 2}},
		{Is: NodeDead, Facts: &Facts{Requests: 8, PerSecond: 100}}, // the former control unit
		{Is: NodeWaiting},
	}}
	for i := range c.Nodes {
		c.Totals.Add(c.Nodes[i].Load)
	}
	c.Measure()
	const want = "speed 30.0 pages/s (6.0 kB/s), srcuse 15.0 pages/s (3.0 kB/s) a node, duplicate 6 (60.0 per 10,000), " +
		"communicate 4.0 host requests/s (50)"
	if got := c.Measures.String(); got != want || math.Abs(c.Measures.Duplicate-0.006) > 1e-9 {
		t.Errorf("got %q, %v\nwant %q", got, c.Measures.Duplicate, want)
	}
	mesh := &Cluster{Gathered: &Gathered{Nodes: 3}, Totals: Load{Rate: 6}}
	if mesh.Measure(); mesh.Measures.String() != "speed 6.0 pages/s, srcuse 2.0 pages/s a node, duplicate 0 (0.0 per 10,000)" {
		t.Errorf("of a mesh: %v", mesh.Measures)
	}
	waiting := &Cluster{Nodes: []Node{{Is: NodeWaiting}}}
	if waiting.Measure(); waiting.Measures != nil {
		t.Errorf("of a crawl without members: %v", waiting.Measures)
	}
}
