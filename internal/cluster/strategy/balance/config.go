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

	MinWork  time.Duration // a node gets more when it has less than that to do; 2s
	MaxPool  int           // hosts that are pooled at most; 20,000
	MaxLinks int           // that wait for them at most; 50,000
	MoveTime time.Duration // what a move of hosts takes, until one was measured; 2s
	MinStay  time.Duration // for so long a host that has moved does not move again; 15s
	Seed     uint64        // of the model and the swarm
	Hidden   int           // units of the model's hidden layer; 13
}

// LAN is for nodes that are in one place.
func LAN() Config { return Config{}.withDefaults() }

// WAN is for nodes that are far from each other.
func WAN() Config {
	return Config{Config: central.Config{
		Retry:        2 * time.Second,
		Beat:         2 * time.Second,
		Silence:      7 * time.Second,
		DecisionWait: 5 * time.Second,
		GatherTime:   4 * time.Second,
		JoinTimeout:  time.Minute,
	}, MinWork: 5 * time.Second, MoveTime: 5 * time.Second,
		MinStay: time.Minute}.withDefaults()
}

func (c Config) withDefaults() Config {
	c.MinWork, c.MoveTime, c.MinStay = cmp.Or(
		c.MinWork,
		2*time.Second,
	), cmp.Or(
		c.MoveTime,
		2*time.Second,
	), cmp.Or(
		c.MinStay,
		15*time.Second,
	)
	c.OfferCooldown = cmp.Or(c.OfferCooldown, c.MinStay)
	c.Config = c.Config.WithDefaults()
	c.MaxPool, c.MaxLinks = cmp.Or(c.MaxPool, 20_000), cmp.Or(c.MaxLinks, 50_000)
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
