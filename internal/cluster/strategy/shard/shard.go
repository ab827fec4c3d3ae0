package shard

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// DefaultSlots is the default of Config.Slots. A slot costs four bytes of memory, and no time in lookups.
const DefaultSlots = 1024

// A Config configures the placement of hosts. All nodes of a crawl must have the same one, for the crawl's lifetime.
type Config struct {
	Slots  int    // M, the largest planned number of nodes; 0: DefaultSlots
	Second Second // spreads the hosts of empty slots
	Key    Key    // groups hosts
	Seed   uint64 // yields different placements
}

// A Key is the part of a URL that determines its node.
//
// The server's address is not an option: name servers give different answers to different nodes, so nodes would not
// agree. With domains, shares are less even, because some domains have thousands of hosts. The list of public suffixes
// must be the same on all nodes, so all must run the same build. A lookup costs 0.3 µs more and, against the rule for
// views, allocates 48 bytes: the list's reader first tries to parse the name as an address, which creates an error.
type Key uint8

// Keys.
const (
	ByHost   Key = iota // the host, with a port that is not the scheme's default
	ByDomain            // the registered domain: www.example.co.uk and example.co.uk:8080 belong together
	ByURL               // the URL, as in the paper: the crawl divides each host into slices by a hash of the URL
)

var keys = [...]string{ByHost: "host", ByDomain: "domain", ByURL: "url"}

// String returns the name that ParseKey accepts.
func (k Key) String() string {
	if int(k) < len(keys) {
		return keys[k]
	}
	return fmt.Sprintf("Key(%d)", uint8(k))
}

// Keys returns the names of all keys.
func Keys() []string { return slices.Clone(keys[:]) }

// ParseKey returns the key with a name.
func ParseKey(name string) (Key, error) {
	if k := slices.Index(keys[:], name); k >= 0 {
		return Key(k), nil
	}
	return 0, fmt.Errorf("unknown hash key %q; use one of %q", name, keys)
}

// A Second is a method to spread the hosts of empty slots.
type Second uint8

// Methods of the second level.
const (
	Rendezvous Second = iota // node whose hash with the host is greatest: fewest moves, 2 ns per node
	Jump                     // jump hash of Lamping and Veach: fewest moves only if nodes change at the list's end
	Paper                    // hash mod N, as in the paper: moves nearly all hosts when N changes
	Ring                     // next of 128 points of each node on a circle: fewest moves, but uneven shares
)

var seconds = [...]string{Rendezvous: "rendezvous", Jump: "jump", Paper: "paper", Ring: "ring"}

// String returns the name that ParseSecond accepts.
func (s Second) String() string {
	if int(s) < len(seconds) {
		return seconds[s]
	}
	return fmt.Sprintf("Second(%d)", uint8(s))
}

// ParseSecond returns the method with a name.
func ParseSecond(name string) (Second, error) {
	if s := slices.Index(seconds[:], name); s >= 0 {
		return Second(s), nil
	}
	return 0, fmt.Errorf("unknown second level %q; use one of %q", name, seconds)
}

// New returns the strategy. It panics if Slots is negative, or Second or Key is not one of the constants.
func New(cfg Config) strategy.Placer {
	if cfg.Slots < 0 || int(cfg.Second) >= len(seconds) || int(cfg.Key) >= len(keys) {
		panic(fmt.Sprintf("shard.New: invalid configuration %+v", cfg))
	}
	cfg.Slots = cmp.Or(cfg.Slots, DefaultSlots)
	s := &sharding{cfg: cfg}
	s.view = s.Place(nil)
	return s
}

// sharding is the state of one node: the view of the last list of members.
type sharding struct {
	cfg  Config
	view strategy.View
}

var _ strategy.Placer = (*sharding)(nil)

// Step applies lists of members; only the last one counts.
func (s *sharding) Step(_ time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	for _, e := range slices.Backward(in) {
		if list, ok := e.(strategy.Members); ok {
			s.view = s.Place(list.Members)
			return append(out, strategy.ViewChanged{})
		}
	}
	return out
}

func (s *sharding) View() strategy.View { return s.view }

// Minimal reports whether the second level is rendezvous or ring hashing.
func (s *sharding) Minimal() bool { return s.cfg.Second == Rendezvous || s.cfg.Second == Ring }
