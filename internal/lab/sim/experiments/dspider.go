package experiments

import (
	"context"
	"fmt"
)

// DSpider simulates the two experiments by which DSpider (Wu, Ke, He and Liu, 2011) was evaluated. Nodes fetch, and a
// control unit assigns the hosts, in one network or far apart. The paper used eight computers, one of which served the
// web; here everything runs in virtual time. Each assumption that the paper leaves open is a field, so that its
// influence can be measured.
type DSpider struct {
	Files, Hosts   int     // the web: files, spread evenly over hosts
	Classes        int     // a file has 1 to Classes f, uniformly distributed
	Delays         int     // a connection takes 1 to Delays T, uniformly distributed
	Start          int     // hosts that each node knows at the start: m
	StartReachable bool    // only hosts that the node can reach
	LinkChance     float64 // probability that a file names another host
	Timeout        float64 // of a connection, in T

	LAN, WAN   Net
	FixedShare bool    // each node of the LAN has a fixed share of the bandwidth, even if others are idle
	Persist    float64 // T until a decision of kumo's control unit is durable
	Decider    Decider // in kumo's mode
	RoundRobin bool    // a node takes turns between its hosts, a file each, instead of finishing one host first

	Places   int       // concurrent fetches of a node with saturated links
	Nodes    []int     // of experiment 1
	Timeouts []float64 // of experiment 2
	FewNodes int       // nodes of experiment 2
	Runs     int       // number of seeds
	Seed     uint64    // the first seed
}

// A Net is the network between nodes.
type Net struct {
	Bandwidth float64 // f/T: of the whole LAN, or of each node of a WAN
	Message   float64 // T that a message takes
}

// DSpiderOfPaper returns the paper's world, with likely values where the paper gives none.
func DSpiderOfPaper() DSpider {
	return DSpider{
		Files: 200_000, Hosts: 400, Classes: 10, Delays: 9, Start: 3, StartReachable: true, LinkChance: 0.01, Timeout: 5,
		LAN: Net{Bandwidth: 25, Message: 0.05}, WAN: Net{Bandwidth: 5, Message: 5}, FixedShare: true, Persist: 0.1,
		Places: 16, Nodes: []int{3, 4, 5, 6, 7}, Timeouts: []float64{3, 4, 5, 6, 7}, FewNodes: 3, Runs: 10, Seed: 1,
	}
}

// A Mode selects the rules that nodes follow.
type Mode uint8

// The modes.
const (
	AsPaper Mode = iota // fetch, then claim; failures are sent to all; a node never retries a host
	// probe before the claim; links are sent to the owner; nodes likely to be near are asked first; failed hosts are
	// parked and retried
	AsKumo
)

func (m Mode) String() string { return [...]string{"paper", "kumo"}[m] }

// A Loading is the number of files that a node fetches concurrently.
type Loading uint8

// The loadings.
const (
	OneByOne  Loading = iota // one file after another: a node spends half of its time waiting for connections
	Saturated                // enough to saturate the links
)

func (l Loading) String() string { return [...]string{"one", "saturated"}[l] }

// LongName returns a longer name.
func (l Loading) LongName() string {
	return [...]string{"one file after another", "links saturated"}[l]
}

// A NetworkKind is the kind of network between the nodes.
type NetworkKind uint8

// The kinds of networks.
const (
	LAN NetworkKind = iota // one network with shared bandwidth; all nodes have the same delay to a host
	WAN                    // each node has its own network
)

func (p NetworkKind) String() string { return [...]string{"LAN", "WAN"}[p] }

// A Setting has the parameters of a run.
type Setting struct {
	Experiment int
	Mode       Mode
	Loading    Loading
	Network    NetworkKind
	Nodes      int
	Timeout    float64
}

// X returns the setting's value on its experiment's axis.
func (s Setting) X() float64 {
	if s.Experiment == 1 {
		return float64(s.Nodes)
	}
	return s.Timeout
}

// Settings returns the settings of both experiments, in the order of the tables.
func (d *DSpider) Settings() (all []Setting) {
	for experiment := 1; experiment <= 2; experiment++ {
		for _, mode := range []Mode{AsPaper, AsKumo} {
			for _, loading := range []Loading{OneByOne, Saturated} {
				for _, place := range []NetworkKind{LAN, WAN} {
					all = append(all, d.axis(Setting{experiment, mode, loading, place, d.FewNodes, d.Timeout})...)
				}
			}
		}
	}
	return all
}

func (d *DSpider) axis(s Setting) (all []Setting) {
	if s.Experiment == 1 {
		for _, n := range d.Nodes {
			s.Nodes = n
			all = append(all, s)
		}
		return all
	}
	for _, t := range d.Timeouts {
		s.Timeout = t
		all = append(all, s)
	}
	return all
}

// A Point has the results of all runs of a setting, in the order of their seeds.
type Point struct {
	Setting
	Runs []Figures
}

// Run runs all settings. progress receives the number of finished runs and of all. Points are in the order of Settings.
func (d *DSpider) Run(ctx context.Context, progress func(done, of int)) ([]Point, error) {
	settings := d.Settings()
	points := make([]Point, len(settings))
	for i, s := range settings {
		points[i].Setting = s
	}
	done, made := 0, map[Setting]Figures{}
	for seed := d.Seed; seed < d.Seed+uint64(d.Runs); seed++ {
		web := newGeneratedWeb(d, seed)
		clear(made)
		for i, s := range settings {
			same := s // both experiments may have the same run
			same.Experiment = 0
			f, ok := made[same]
			if !ok {
				var err error
				if f, err = d.one(ctx, web, s); err != nil {
					return nil, err
				}
				made[same] = f
			}
			points[i].Runs = append(points[i].Runs, f)
			done++
			progress(done, len(settings)*d.Runs)
		}
	}
	return points, nil
}

func (d *DSpider) one(ctx context.Context, web *generatedWeb, s Setting) (Figures, error) {
	w := newSpiderWorld(d, s, web.forSetting(s.Network, s.Nodes, s.Timeout, d.StartReachable))
	if err := w.run(ctx); err != nil {
		return Figures{}, fmt.Errorf("%v, %v, %d nodes, timeout %gT, seed %d: %w", s.Mode, s.Network, s.Nodes, s.Timeout,
			web.seed, err)
	}
	return w.figures(), nil
}

func (d *DSpider) net(p NetworkKind) Net {
	if p == LAN {
		return d.LAN
	}
	return d.WAN
}

func (d *DSpider) places(l Loading) int {
	if l == OneByOne {
		return 1
	}
	return d.Places
}
