package experiments

import (
	"math"
	"math/rand/v2"
	"time"

	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/lab/sim/queue"
)

// A Program describes what a crawler needs of a machine to fetch a piece, which is a number of URLs. It has a number of
// places, limited by memory. Each place processes one page after another: it waits for the server, transfers the page
// over the network, processes it on a core and writes it to the disk. All places share network, cores and disk.
type Program struct {
	Name      string
	Start     float64 // 10⁹ cycles of one core, before the first page
	Latency   float64 // seconds until a server answers
	Down      float64 // Mb of a page over the network
	Work      float64 // 10⁹ core cycles for a page
	Written   float64 // Mb of a page to the disk
	Cores     int     // most cores used at once; 0: all
	Migration float64 // additional share of cycles per page for each core of the machine after the first
	Resident  float64 // GB used without pages
	Place     float64 // GB used by each place
	Places    int     // most places
}

// PaperProgram is a crawler like the paper's, which is written in Python, runs on Hadoop, and loses time by migrating
// between cores. The work for a page is chosen so that the paper's split of 500 URLs, and the even one, take about as
// long as in the paper. Migration is an assumption: it alone makes more cores slower.
func PaperProgram() Program {
	return Program{Name: "paper", Start: 180, Latency: 0.3, Down: 3.25, Work: 0.7, Written: 0.47, Cores: 1,
		Migration: 0.04, Resident: 0.25, Place: 0.25, Places: 4}
}

// KumoProgram fetches the same pages and does the same work for each, but uses all cores, in one process that starts
// within seconds.
func KumoProgram() Program {
	p := PaperProgram()
	p.Name, p.Start, p.Cores, p.Migration = "kumo", 5, 0, 0
	p.Resident, p.Place, p.Places = 0.2, 0.05, 64
	return p
}

func (p *Program) places(m model.Machine) int {
	return max(1, min(p.Places, int((m.MemoryGB-p.Resident)/p.Place+1e-9)))
}

func (p *Program) cores(m model.Machine) int {
	n := max(1, int(m.Cores))
	if p.Cores > 0 {
		n = min(n, p.Cores)
	}
	return n
}

// work returns a core's seconds for the mean page.
func (p *Program) work(m model.Machine) float64 {
	return p.Work * (1 + p.Migration*(m.Cores-1)) / m.GHz
}

// Bound returns a lower bound of the seconds that a number of mean pages take: that of the machine's narrowest
// resource, which is network, cores, disk or places.
func (p *Program) Bound(m model.Machine, urls int) float64 {
	if urls <= 0 {
		return 0
	}
	network, work, disk := p.Down/m.NetworkMbps, p.work(m), p.Written/m.DiskMbps
	one := p.Latency + network + work + disk
	page := max(network, work/float64(p.cores(m)), disk, one/float64(p.places(m)))
	return p.Start/m.GHz + max(one, float64(urls)*page)
}

// A Piece is the result of fetching the pages of one assignment.
type Piece struct {
	Seconds                  float64 // from the start until the last page is written
	Network, Processor, Disk float64 // shares of this time for which each was in use
}

// spread describes how pages vary. A page's size, which scales network, work and disk, and its server's latency are
// their means times e^(spread·x)/e^(spread²/2), with a normally distributed x.
const spread = 0.5

func differs(rng *rand.Rand) float64 { return math.Exp(spread*rng.NormFloat64() - spread*spread/2) }

// A pageCost is the cost of a page, relative to the mean page.
type pageCost struct{ size, latency float64 }

// pagesOf returns the first n pages of the sequence with this seed.
func pagesOf(seed uint64, n int) []pageCost {
	rng, all := rand.New(rand.NewPCG(seed, 0x7061676573)), make([]pageCost, n)
	for i := range all {
		all[i] = pageCost{differs(rng), differs(rng)}
	}
	return all
}

// Fetch lets a machine fetch the first pages of the sequence with this seed, in virtual time.
func (p *Program) Fetch(m model.Machine, urls int, seed uint64) Piece {
	if urls <= 0 {
		return Piece{}
	}
	f := &fetchingMachine{program: p, machine: m, now: ticks(p.Start / m.GHz), network: newSharedLink(m.NetworkMbps),
		cores: station{free: p.cores(m)}, disk: station{free: 1}, current: make([]pageCost, p.places(m)),
		pages: pagesOf(seed, urls)}
	for place := range min(p.places(m), urls) {
		f.next(int32(place))
	}
	for f.step() {
	}
	return f.figures()
}

// A fetchingMachine is a machine that runs a program.
type fetchingMachine struct {
	program *Program
	machine model.Machine
	now     time.Duration
	agenda  queue.Agenda[stage]
	network *sharedLink
	cores   station
	disk    station
	current []pageCost // the page of each place
	pages   []pageCost // still to fetch
}

// A stage is a scheduled event: the end of a stage of a place's page.
type stage struct {
	what  uint8
	place int32
}

const (
	answered uint8 = iota // by the server
	worked                // by a core
	written               // to the disk
)

// next starts the next page in a place, if any is left.
func (f *fetchingMachine) next(place int32) {
	if len(f.pages) > 0 {
		page := f.pages[0]
		f.current[place], f.pages = page, f.pages[1:]
		f.agenda.Put(f.now+ticks(page.latency*f.program.Latency), stage{answered, place})
	}
}

// step handles the next event; false if there is none.
func (f *fetchingMachine) step() bool {
	at := min(f.agenda.Next(), f.network.nextEnd)
	if at == forever {
		return false
	}
	f.now = at
	if at == f.network.nextEnd {
		place := f.network.finish()
		f.cores.serve(f, place, worked, f.current[place].size*f.program.work(f.machine))
		return true
	}
	switch s := f.agenda.Take(); s.what {
	case answered:
		f.network.begin(f.now, f.current[s.place].size*f.program.Down, s.place)
	case worked:
		f.cores.leave(f, worked)
		f.disk.serve(f, s.place, written, f.current[s.place].size*f.program.Written/f.machine.DiskMbps)
	case written:
		f.disk.leave(f, written)
		f.next(s.place)
	}
	return true
}

func (f *fetchingMachine) figures() Piece {
	s := inTicks(f.now)
	return Piece{Seconds: s, Network: f.network.moved / (f.machine.NetworkMbps * s),
		Processor: f.cores.busy / (float64(f.program.cores(f.machine)) * s), Disk: f.disk.busy / s}
}

// A station serves pages in order of arrival: the cores, or the disk.
type station struct {
	free  int
	queue []serving
	busy  float64 // seconds, the sum over all its servers
}

type serving struct {
	place   int32
	seconds float64
}

func (s *station) serve(f *fetchingMachine, place int32, what uint8, seconds float64) {
	if s.free == 0 {
		s.queue = append(s.queue, serving{place, seconds})
		return
	}
	s.free--
	s.busy += seconds
	f.agenda.Put(f.now+ticks(seconds), stage{what, place})
}

func (s *station) leave(f *fetchingMachine, what uint8) {
	s.free++
	if len(s.queue) > 0 {
		next := s.queue[0]
		s.queue = s.queue[1:]
		s.serve(f, next.place, what, next.seconds)
	}
}
