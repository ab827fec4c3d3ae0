package stats

import "fmt"

// Placement has the results of assigning hosts to a node of a cluster, since the start of its process.
type Placement struct {
	Duplicates int64 `json:"duplicates"` // pages that another node had fetched, too, when it handed over their hosts
	// as the control unit: requests of nodes about hosts, and answers
	HostRequests int64 `json:"host_requests"`
	// timeout of a first connection to a host, and its bounds, in seconds; 0: the strategy has none
	ConnectTimeout    float64 `json:"connect_timeout"`
	MinConnectTimeout float64 `json:"connect_timeout_min"`
	MaxConnectTimeout float64 `json:"connect_timeout_max"`
}

// print prints the placement of a node that fetched pages in a run of some seconds.
func (p *Placement) print(row func(name, format string, args ...any), pages int64, seconds float64) {
	share := 0.0
	if pages > 0 {
		share = 1e4 * float64(p.Duplicates) / float64(pages)
	}
	text := fmt.Sprintf("%s also fetched by another node (%.1f per 10,000)", Count(p.Duplicates, "pages"), share)
	if p.HostRequests > 0 && seconds > 0 {
		text += fmt.Sprintf("; as control unit %s (%.1f/s)", Count(p.HostRequests, "host requests"),
			float64(p.HostRequests)/seconds)
	}
	if p.ConnectTimeout > 0 {
		text += fmt.Sprintf("; connect timeout %.4gs", p.ConnectTimeout)
	}
	row("placement", "%s", text)
}
