package experiments

import (
	"math"
	"math/rand/v2"
	"time"

	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/lab/sim/queue"
)

// A Program is what a crawler's process takes of a machine to fetch a piece, a number of URLs. It has so many places,
// as its memory allows; in each, pages are fetched one after another: the server is waited for, the page comes over the
// network, is worked on by a core, and written to the disk. Network, cores and disk are shared by all places.
type Program struct {
	Name      string
	Start     float64 // 10⁹ cycles of one core, before the first page
	Latency   float64 // seconds until a server answers
	Down      float64 // Mb of a page that come over the network
	Work      float64 // 10⁹ cycles of a core for a page
	Written   float64 // Mb of a page that go to the disk
	Cores     int     // that it can use at once; 0: all
	Migration float64 // by this part a page takes more cycles for each core of the machine beyond the first
	Resident  float64 // GB that it has without pages
	Place     float64 // GB that it has for each place
	Places    int     // at most
}

// PaperProgram is a crawler like the paper's, of which the paper says that it is in Python, runs on Hadoop, and loses
// time by migrating between cores. What a page takes is chosen so that the paper's split of 500 URLs, and the even one,
// take about as long as they did there. That more cores make it slower is put in, by Migration.
func PaperProgram() Program {
	return Program{Name: "paper", Start: 180, Latency: 0.3, Down: 3.25, Work: 0.7, Written: 0.47, Cores: 1,
		Migration: 0.04, Resident: 0.25, Place: 0.25, Places: 4}
}

// KumoProgram fetches the same pages, and does as much work for each, as kumo does: at once, on all cores, in one
// process that begins within seconds.
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

// startJob is how long a core takes for the mean page, in seconds.
func (p *Program) work(m model.Machine) float64 {
	return p.Work * (1 + p.Migration*(m.Cores-1)) / m.GHz
}

// Bound is the time below which no piece of so many mean pages ends, in seconds: that of what is narrowest on the
// machine, network, cores, disk or places.
func (p *Program) Bound(m model.Machine, urls int) float64 {
	if urls <= 0 {
		return 0
	}
	network, work, disk := p.Down/m.NetworkMbps, p.work(m), p.Written/m.DiskMbps
	one := p.Latency + network + work + disk
	page := max(network, work/float64(p.cores(m)), disk, one/float64(p.places(m)))
	return p.Start/m.GHz + max(one, float64(urls)*page)
}

// A Piece is what the pages of one assignment came to.
type Piece struct {
	Seconds                  float64 // from the start until the last page is written
	Network, Processor, Disk float64 // parts of this in which they were in use
}

// Pages differ: a page's size, by which network, work and disk go, and how long its server takes are its mean times
// e^(spread·x)/e^(spread²/2), with x from the normal distribution.
const spread = 0.5

func differs(rng *rand.Rand) float64 { return math.Exp(spread*rng.NormFloat64() - spread*spread/2) }

// A pageCost is what one page takes, by the mean page.
type pageCost struct{ size, latency float64 }

// pagesOf are the pages of an assignment, the first ones of a row that follows from a seed.
func pagesOf(seed uint64, n int) []pageCost {
	rng, all := rand.New(rand.NewPCG(seed, 0x7061676573)), make([]pageCost, n)
	for i := range all {
		all[i] = pageCost{differs(rng), differs(rng)}
	}
	return all
}

// Fetch has a machine fetch the first pages of the row of a seed, in virtual time.
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

// A fetchingMachine runs a program.
type fetchingMachine struct {
	program *Program
	machine model.Machine
	now     time.Duration
	agenda  queue.Agenda[stage]
	network *sharedLink
	cores   station
	disk    station
	current []pageCost // the page of each place
	pages   []pageCost // that are left
}

// A stage is something that is due of a place's page.
type stage struct {
	what  uint8
	place int32
}

const (
	answered uint8 = iota // the server has
	worked                // a core has
	written               // the disk has
)

// next has a place begin with the next page, if there is one.
func (f *fetchingMachine) next(place int32) {
	if len(f.pages) > 0 {
		page := f.pages[0]
		f.current[place], f.pages = page, f.pages[1:]
		f.agenda.Put(f.now+ticks(page.latency*f.program.Latency), stage{answered, place})
	}
}

// step lets the next thing happen; false: there is none.
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

// A station serves pages in the order in which they come: the cores, or the disk.
type station struct {
	free  int
	queue []serving
	busy  float64 // seconds, of all that it serves by
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
