package sim

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// twoRates returns nodes. One receives twice as much as it can fetch, the others less.
func twoRates(balance bool) MeshRates {
	all := []MeshRate{{Fetch: 0.1, Arrive: 0.2, Area: 1}}
	for range 3 {
		all = append(all, MeshRate{Fetch: 0.2, Arrive: 0.05, Area: 5})
	}
	return MeshRates{Nodes: all, Balance: balance, Block: 20, Interval: time.Minute, Sample: 10 * time.Minute, Samples: 6}
}

// TestURLsComeToTheirNodes: URLs arrive at the configured rates, and no node exceeds its fetch rate.
func TestURLsComeToTheirNodes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	cfg := twoRates(false)
	s := RunMeshRates(cfg, seed)
	last := s.Nodes[len(s.Nodes)-1]
	for i, n := range last {
		r := cfg.Nodes[i]
		came, want := float64(n.Waiting+n.Fetched), r.Arrive*3600
		if math.Abs(came-want) > 5*math.Sqrt(want) {
			t.Errorf("%v URLs came to node %d, want about %v", came, i, want)
		}
		if most := r.Fetch*3600 + 1; float64(n.Fetched) > most {
			t.Errorf("node %d has fetched %d URLs, of at most %v", i, n.Fetched, most)
		}
		if r.Arrive < r.Fetch && n.Waiting > 10 {
			t.Errorf("%d URLs wait at node %d, which fetches faster than they come", n.Waiting, i)
		}
	}
	if n := s.Figures[5].MovedHosts; n != 0 {
		t.Errorf("%d hosts were given to other nodes", n)
	}
}

// TestLoadGoesToWhoHasRoom: with balancing, all arriving URLs are fetched, as there is room for them.
func TestLoadGoesToWhoHasRoom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, urls := range []int{1, 10} {
		cfg := twoRates(true)
		cfg.HostURLs = urls
		last := RunMeshRates(cfg, seed).Nodes[5]
		for i, n := range last {
			if n.Level > 2 || n.Waiting > (cfg.Nodes[i].Area+4)*20 {
				t.Errorf("%d URLs a host: node %d is at %+v", urls, i, n)
			}
		}
	}
}

func TestRunsOfOneSeedAreTheSame(t *testing.T) {
	cfg := twoRates(true)
	cfg.Samples = 2
	if a, b := RunMeshRates(cfg, 7), RunMeshRates(cfg, 7); !reflect.DeepEqual(a, b) {
		t.Errorf("%+v\n%+v", a, b)
	}
	if a, b := RunMeshRates(cfg, 7), RunMeshRates(cfg, 8); reflect.DeepEqual(a, b) {
		t.Error("another seed makes no difference")
	}
}
