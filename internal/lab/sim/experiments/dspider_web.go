package experiments

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// A generatedWeb is the web that computer eight played: files on hosts, of which some name another host. All that is drawn
// follows from the seed, and neither from the number of nodes nor from the timeout, so that settings are compared in
// the same world.
type generatedWeb struct {
	seed      uint64
	names     []string // of hosts
	first     []int32  // a host's first file; one more at the end
	size      []uint8  // f, of each file
	link      []int32  // the host that a file names; -1: none
	start     []int32  // hosts in the order in which nodes begin with them
	delays    int
	startEach int // hosts that a node begins with
}

// Streams of chance, one for each thing drawn.
const (
	drawFiles = iota + 1
	drawStart
	drawFound
	drawDelay // and one more for each node
)

func (w *generatedWeb) chance(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, stream)) }

func newGeneratedWeb(d *DSpider, seed uint64) *generatedWeb {
	w := &generatedWeb{seed: seed, size: make([]uint8, d.Files), link: make([]int32, d.Files), delays: d.Delays, startEach: d.Start}
	for h := range d.Hosts {
		w.names = append(w.names, fmt.Sprintf("h%06d.test", h))
		w.first = append(w.first, int32(h*d.Files/d.Hosts))
	}
	w.first = append(w.first, int32(d.Files))
	r := w.chance(drawFiles)
	for h := range d.Hosts {
		for f := w.first[h]; f < w.first[h+1]; f++ {
			w.size[f], w.link[f] = uint8(1+r.IntN(d.Classes)), -1
			if r.Float64() < d.LinkChance {
				w.link[f] = int32((h + 1 + r.IntN(d.Hosts-1)) % d.Hosts) // another
			}
		}
	}
	for _, h := range w.chance(drawStart).Perm(d.Hosts) {
		w.start = append(w.start, int32(h))
	}
	return w
}

// A settingWeb is a made web as the nodes of one setting see it.
type settingWeb struct {
	*generatedWeb
	link       []int32
	delay      [][]uint8 // T to connect, by node and host
	startHosts [][]int32 // hosts that each node begins with
}

// forSetting makes a web's sight by nodes. Near: none begins with hosts that it does not reach, as long as there are others.
func (w *generatedWeb) forSetting(place NetworkKind, nodes int, timeout float64, near bool) *settingWeb {
	s := &settingWeb{generatedWeb: w, link: slices.Clone(w.link)}
	for node := range nodes {
		if place == LAN && node > 0 {
			s.delay = append(s.delay, s.delay[0])
			continue
		}
		r, row := w.chance(drawDelay+uint64(node)), make([]uint8, len(w.names))
		for h := range row {
			row[h] = uint8(1 + r.IntN(w.delays))
		}
		s.delay = append(s.delay, row)
	}
	s.chooseStartHosts(timeout, near)
	s.linkAll()
	return s
}

func (s *settingWeb) chooseStartHosts(timeout float64, near bool) {
	left := slices.Clone(s.start)
	for node := range s.delay {
		var mine []int32
		for range s.startEach {
			i := 0
			if near {
				i = max(0, slices.IndexFunc(left, func(h int32) bool { return s.reaches(node, h, timeout) }))
			}
			mine = append(mine, left[i])
			left = slices.Delete(left, i, i+1)
		}
		s.startHosts = append(s.startHosts, mine)
	}
}

func (s *settingWeb) reaches(node int, host int32, timeout float64) bool {
	return float64(s.delay[node][host]) <= timeout
}

// linkAll has every host named: chance leaves less than one in a hundred without a file that names it, and a crawl
// could not find these.
func (s *settingWeb) linkAll() {
	found := s.findHosts(func(int32) bool { return true })
	r := s.chance(drawFound)
	for h := range found {
		for !found[h] {
			from := int32(r.IntN(len(s.names)))
			file := s.first[from] + int32(r.IntN(int(s.first[from+1]-s.first[from])))
			if found[from] && s.link[file] < 0 {
				s.link[file] = int32(h)
				s.follow(found, []int32{int32(h)}, func(int32) bool { return true })
			}
		}
	}
}

// found says which hosts a crawl finds that can fetch from those which it can open.
func (s *settingWeb) findHosts(opens func(host int32) bool) []bool {
	found := make([]bool, len(s.names))
	for _, begin := range s.startHosts {
		s.follow(found, begin, opens)
	}
	return found
}

func (s *settingWeb) follow(found []bool, hosts []int32, opens func(int32) bool) {
	todo := slices.Clone(hosts)
	for len(todo) > 0 {
		h := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if found[h] {
			continue
		}
		found[h] = true
		if !opens(h) {
			continue
		}
		for _, to := range s.link[s.first[h]:s.first[h+1]] {
			if to >= 0 && !found[to] {
				todo = append(todo, to)
			}
		}
	}
}

func (s *settingWeb) anyReaches(host int32, timeout float64) bool {
	for node := range s.delay {
		if s.reaches(node, host, timeout) {
			return true
		}
	}
	return false
}
