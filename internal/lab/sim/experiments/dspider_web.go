package experiments

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// A generatedWeb is the web that the paper's computer eight served: files on hosts. Some files name another host. It
// depends only on the seed, so that runs with different numbers of nodes and timeouts have the same web.
type generatedWeb struct {
	seed      uint64
	names     []string // of hosts
	first     []int32  // first file of each host, and the number of files at the end
	size      []uint8  // of each file, in f
	link      []int32  // host that each file names; -1: none
	start     []int32  // hosts in the order in which they are assigned to nodes at the start
	delays    int
	startEach int // hosts that a node starts with
}

// Independent random streams.
const (
	drawFiles = iota + 1
	drawStart
	drawFound
	drawDelay // followed by one for each node
)

func (w *generatedWeb) chance(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, stream)) }

func newGeneratedWeb(d *DSpider, seed uint64) *generatedWeb {
	w := &generatedWeb{seed: seed, size: make([]uint8, d.Files), link: make([]int32, d.Files), delays: d.Delays,
		startEach: d.Start}
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
				w.link[f] = int32((h + 1 + r.IntN(d.Hosts-1)) % d.Hosts) // never the host itself
			}
		}
	}
	for _, h := range w.chance(drawStart).Perm(d.Hosts) {
		w.start = append(w.start, int32(h))
	}
	return w
}

// A settingWeb is a generated web with the delays of one setting.
type settingWeb struct {
	*generatedWeb
	link       []int32
	delay      [][]uint8 // T to connect, by node and host
	startHosts [][]int32 // hosts that each node starts with
}

// forSetting returns the web for a setting. With near, nodes start with hosts that they reach, as long as there are
// any.
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

// linkAll makes all hosts reachable: fewer than one in a hundred are not named by any file by chance, and a crawl could
// not find them.
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

// findHosts returns the hosts that a crawl finds if it can open the hosts that opens selects.
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
