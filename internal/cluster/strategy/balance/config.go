package balance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"kumo/internal/cluster/strategy/central"
)

// Config is what a strategy that balances is made of.
type Config struct {
	central.Config
	Splitter Splitter

	Lead   time.Duration // a node gets more when it has less than that to do; 2s
	Pool   int           // hosts that are pooled at most; 20,000
	Links  int           // that wait for them at most; 50,000
	Move   time.Duration // what a move of hosts takes, until one was measured; 2s
	Stay   time.Duration // for so long a host that has moved does not move again; 15s
	Seed   uint64        // of the model and the swarm
	Hidden int           // units of the model's hidden layer; 13
}

// LAN is for nodes that are in one place.
func LAN() Config { return Config{}.withDefaults() }

// WAN is for nodes that are far from each other.
func WAN() Config {
	return Config{Config: central.Config{Retry: 2 * time.Second, Beat: 2 * time.Second, Silence: 7 * time.Second,
		Wait: 5 * time.Second, Gather: 4 * time.Second, Await: time.Minute}, Lead: 5 * time.Second, Move: 5 * time.Second,
		Stay: time.Minute}.withDefaults()
}

func (c Config) withDefaults() Config {
	c.Lead, c.Move, c.Stay = cmp.Or(c.Lead, 2*time.Second), cmp.Or(c.Move, 2*time.Second), cmp.Or(c.Stay, 15*time.Second)
	c.Keep = cmp.Or(c.Keep, c.Stay)
	c.Config = c.Config.WithDefaults()
	c.Pool, c.Links = cmp.Or(c.Pool, 20_000), cmp.Or(c.Links, 50_000)
	return c
}

// A Splitter says how what waits is split.
type Splitter uint8

// The splitters.
const (
	Exact Splitter = iota // the shortest makespan
	Swarm                 // by particle swarm
	Even                  // the same number of links for all
	Hash                  // by a hash of the host's name
)

var splitters = []string{"exact", "swarm", "even", "hash"}

// String is the splitter's name.
func (s Splitter) String() string { return splitters[min(int(s), len(splitters)-1)] }

// Splitters are the names of all.
func Splitters() []string { return append([]string(nil), splitters...) }

// ParseSplitter reads a splitter's name; "" is exact.
func ParseSplitter(name string) (Splitter, error) {
	if i := slices.Index(splitters, cmp.Or(name, splitters[0])); i >= 0 {
		return Splitter(i), nil
	}
	return 0, fmt.Errorf("splitter %q: there are %s", name, strings.Join(splitters, ", "))
}

// predicts reports whether the splitter goes by predictions.
func (s Splitter) predicts() bool { return s == Exact || s == Swarm }
