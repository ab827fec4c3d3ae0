package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	wanLeast = 10 * time.Millisecond // round trips
	wanFar   = 300 * time.Millisecond
	wanSplit = 3 // percent of the pairs of a node and a place that do not reach each other

	// never is the distance of a pair that does not reach each other.
	never = time.Duration(0)
)

// distances are round trips.
type distances struct {
	nodes [][]time.Duration // between nodes
	hosts [][]time.Duration // [node][place of hosts]
	from  string            // in words
}

// placeOf returns the place of a host of the web. The first host, with which the crawl begins and which has the name
// server, is in a place of its own and near to all.
func placeOf(host int) int {
	if host == 0 {
		return 0
	}
	return 1 + (host-1)%(wanPlaces-1)
}

// newDistances returns distances between points on a map or, if folder is given, delays that were measured between real
// places.
func newDistances(seed uint64, folder string) (*distances, error) {
	dice := rand.New(rand.NewPCG(seed, 7))
	d := &distances{from: "on a map"}
	apart := onMap(dice)
	if folder != "" {
		file := filepath.Join(folder, "latency", "PlanetLabData_1")
		rows, err := readRoundTrips(file)
		if err != nil {
			return nil, err
		}
		apart, d.from = asMeasured(rows, dice), "measured"
	}
	for i := range wanNodes {
		var nodes, hosts []time.Duration
		for j := range wanNodes {
			nodes = append(nodes, apart(i, j))
		}
		for j := range wanPlaces {
			far := apart(i, wanNodes+j)
			if dice.IntN(100) < wanSplit {
				far = never
			}
			if j == 0 {
				far = wanLeast
			}
			hosts = append(hosts, far)
		}
		d.nodes, d.hosts = append(d.nodes, nodes), append(d.hosts, hosts)
	}
	for j := range wanPlaces { // at least one node reaches each place
		if _, _, reached := d.of(j); reached == 0 {
			d.hosts[dice.IntN(wanNodes)][j] = wanFar
		}
	}
	return d, nil
}

// onMap puts nodes and places on a square: the diagonal has the longest delay.
func onMap(dice *rand.Rand) func(i, j int) time.Duration {
	var x, y [wanNodes + wanPlaces]float64
	for i := range x {
		x[i], y[i] = dice.Float64(), dice.Float64()
	}
	return func(i, j int) time.Duration {
		return wanLeast + time.Duration(float64(wanFar-wanLeast)*math.Hypot(x[i]-x[j], y[i]-y[j])/math.Sqrt2)
	}
}

// asMeasured puts nodes and places on measured places, each on another. A typical delay replaces a missing one.
func asMeasured(rows [][]float64, dice *rand.Rand) func(i, j int) time.Duration {
	at := dice.Perm(len(rows))
	return func(i, j int) time.Duration {
		ms := rows[at[i]][at[j]]
		if ms <= 0 {
			ms = 100
		}
		return min(wanFar, max(wanLeast, time.Duration(ms*float64(time.Millisecond))))
	}
}

// readRoundTrips reads a square matrix of milliseconds.
func readRoundTrips(file string) (rows [][]float64, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		var row []float64
		for field := range strings.FieldsSeq(line) {
			ms, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return nil, fmt.Errorf("read the round trips of %s: %w", file, err)
			}
			row = append(row, ms)
		}
		rows = append(rows, row)
	}
	for _, row := range rows {
		if len(row) != len(rows) || len(rows) < wanNodes+wanPlaces {
			return nil, fmt.Errorf("read the round trips of %s: %d lines, of %d numbers", file, len(rows), len(row))
		}
	}
	return rows, nil
}

// of returns the distance of a place of hosts from the nearest node, the mean distance from the nodes that reach it,
// and the number of these nodes.
func (d *distances) of(place int) (best, mean time.Duration, reached int) {
	for _, row := range d.hosts {
		if far := row[place]; far != never {
			if reached == 0 || far < best {
				best = far
			}
			mean += far
			reached++
		}
	}
	return best, mean / time.Duration(max(1, reached)), reached
}

// split reports whether some node does not reach a place.
func (d *distances) split(place int) bool {
	_, _, reached := d.of(place)
	return reached < len(d.hosts)
}

func (d *distances) String() string {
	n := 0
	for _, row := range d.hosts {
		for _, far := range row {
			if far == never {
				n++
			}
		}
	}
	return fmt.Sprintf("distances %s, %d of %d pairs of a node and a place do not reach each other", d.from, n,
		len(d.hosts)*wanPlaces)
}

func TestDistances(t *testing.T) {
	folders := []string{""}
	if dir := os.Getenv("KUMO_TEST_DATA"); dir != "" {
		folders = append(folders, dir)
	}
	for _, folder := range folders {
		splits := 0
		for seed := range uint64(20) {
			d, err := newDistances(seed, folder)
			if err != nil {
				t.Fatal(err)
			}
			var nearest, typical time.Duration
			for j := range wanPlaces {
				best, mean, reached := d.of(j)
				if best < wanLeast || mean < best || mean > wanFar || reached == 0 || j == 0 && reached < wanNodes {
					t.Errorf("seed %d, place %d: %v at best, %v on average, reached by %d", seed, j, best, mean, reached)
				}
				nearest, typical, splits = nearest+best, typical+mean, splits+wanNodes-reached
			}
			if nearest*3/2 > typical {
				t.Errorf("seed %d: the nearest nodes are %v away, all of them %v", seed, nearest/wanPlaces, typical/wanPlaces)
			}
		}
		if n := 20 * wanNodes * wanPlaces; splits < n/100 || splits > n/20 {
			t.Errorf("%d of %d pairs do not reach each other", splits, n)
		}
	}
}
