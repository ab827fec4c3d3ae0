package experiments

import (
	"context"
	"fmt"
)

// DSpider is a simulation of the two experiments by which DSpider (Wu, Ke, He and Liu, 2011) was judged: nodes that
// fetch and a control unit that says whose a host is, in one place or far apart. The paper ran eight computers of which
// one played the web; here all is virtual time. What the paper leaves open is a field, so that what follows from an
// assumption can be seen.
type DSpider struct {
	Files, Hosts   int     // the web: files, evenly on hosts
	Classes        int     // a file is of 1 to so many f, all as likely
	Delays         int     // a connection takes 1 to so many T, all as likely
	Start          int     // hosts that each node knows at the beginning: m
	StartReachable bool    // of those only such as the node reaches
	LinkChance     float64 // chance that a file names another host
	Timeout        float64 // T that a connection may take

	LAN, WAN   Net
	FixedShare bool    // a node of the LAN has its part of the bandwidth and no more, also while others fetch nothing
	Persist    float64 // T until what kumo's control unit decides is on its servers' disks
	Decider    Decider // of kumo's mode
	RoundRobin bool    // hosts take turns at a node, file by file, instead of one being finished before the next

	Places   int       // files that a node fetches at once where links are to be saturated
	Nodes    []int     // of experiment 1
	Timeouts []float64 // of experiment 2
	FewNodes int       // nodes of experiment 2
	Runs     int       // seeds
	Seed     uint64    // the first
}

// A Net is what nodes are connected by.
type Net struct {
	Bandwidth float64 // f/T: of all nodes of a LAN, and of each one of a WAN
	Message   float64 // T that a message takes
}

// DSpiderOfPaper is the paper's world, and where it says nothing what seemed most likely.
func DSpiderOfPaper() DSpider {
	return DSpider{
		Files: 200_000, Hosts: 400, Classes: 10, Delays: 9, Start: 3, StartReachable: true, LinkChance: 0.01, Timeout: 5,
		LAN: Net{Bandwidth: 25, Message: 0.05}, WAN: Net{Bandwidth: 5, Message: 5}, FixedShare: true, Persist: 0.1,
		Places: 16, Nodes: []int{3, 4, 5, 6, 7}, Timeouts: []float64{3, 4, 5, 6, 7}, FewNodes: 3, Runs: 10, Seed: 1,
	}
}

// A Mode is whose rules the nodes follow.
type Mode uint8

// The modes.
const (
	AsPaper Mode = iota // fetch first and claim then; tell all of a failure; no host is tried twice by a node
	// probe before the claim; links go to the owner; who may be near is asked first; hosts are parked and tried again
	AsKumo
)

func (m Mode) String() string { return [...]string{"paper", "kumo"}[m] }

// A Loading is how many files a node fetches at once.
type Loading uint8

// The loadings.
const (
	OneByOne  Loading = iota // one file after another: a node waits for a connection half of its time
	Saturated                // so many that links are full
)

func (l Loading) String() string { return [...]string{"one", "saturated"}[l] }

// LongName is a longer name.
func (l Loading) LongName() string {
	return [...]string{"one file after another", "links saturated"}[l]
}

// A Place is where the nodes are.
type NetworkKind uint8

// The places.
const (
	LAN NetworkKind = iota // all in one network, which has its bandwidth; as far from a host as each other
	WAN                    // each in its own
)

func (p NetworkKind) String() string { return [...]string{"LAN", "WAN"}[p] }

// A Setting is what distinguishes one run from another.
type Setting struct {
	Experiment int
	Mode       Mode
	Loading    Loading
	Network    NetworkKind
	Nodes      int
	Timeout    float64
}

// X is the setting's place on its experiment's axis.
func (s Setting) X() float64 {
	if s.Experiment == 1 {
		return float64(s.Nodes)
	}
	return s.Timeout
}

// Settings are those of both experiments, in the order of the tables.
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

// A Point is what all runs of a setting came to, in the order of their seeds.
type Point struct {
	Setting
	Runs []Figures
}

// Run makes all runs, and tells progress how many are done of how many. Points are in the order of Settings.
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
			same := s // the same run in both experiments
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
