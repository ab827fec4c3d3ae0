package shard

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// DefaultSlots is the largest number of nodes if none is given. More cost four bytes each, and nothing per look-up.
const DefaultSlots = 1024

// A Config says how hosts are placed. All nodes of a crawl must have the same one, for as long as the crawl lives.
type Config struct {
	Slots  int    // M, the largest number of nodes ever planned; 0: DefaultSlots
	Second Second // how the hosts of empty slots are spread
	Key    Key    // what goes together
	Seed   uint64 // gives another placement for each value
}

// A Key says what of a host's name decides.
//
// The server's address is none of them: name servers give different nodes different answers, so nodes would not agree.
// By domain shares are less even, because there are domains with thousands of hosts, and the list of public suffixes
// must be the same on all nodes, so all run one build. A look-up costs 0.3 µs more and, against the rule for views, 48
// bytes: the list's reader first tries the name for an address, and that makes an error.
type Key uint8

// The keys.
const (
	ByHost   Key = iota // the host as the crawl counts it, with a port that is not the scheme's own
	ByDomain            // its registered domain: www.example.co.uk and example.co.uk:8080 go together
)

// A Second is a way to spread the hosts of empty slots.
type Second uint8

// The ways of the second level.
const (
	Rendezvous Second = iota // the node whose hash with the host is greatest: moves the least, costs 2 ns a node
	Jump                     // Lamping and Veach's jump hash: moves the least only if nodes come and go at the list's end
	Paper                    // the hash mod N, as in the paper: moves nearly all when N changes
	Ring                     // the next of 128 points of each node on a circle: moves the least, but shares are uneven
)

var seconds = [...]string{Rendezvous: "rendezvous", Jump: "jump", Paper: "paper", Ring: "ring"}

// String is the name by which ParseSecond knows it.
func (s Second) String() string {
	if int(s) < len(seconds) {
		return seconds[s]
	}
	return fmt.Sprintf("Second(%d)", uint8(s))
}

// ParseSecond finds a way of the second level by its name.
func ParseSecond(name string) (Second, error) {
	if s := slices.Index(seconds[:], name); s >= 0 {
		return Second(s), nil
	}
	return 0, fmt.Errorf("second level %q: not one of %q", name, seconds)
}

// New returns the strategy. It panics if Slots is negative, or Second or Key is none of the constants.
func New(cfg Config) strategy.Placer {
	if cfg.Slots < 0 || int(cfg.Second) >= len(seconds) || cfg.Key > ByDomain {
		panic(fmt.Sprintf("shard.New: %+v is no configuration", cfg))
	}
	cfg.Slots = cmp.Or(cfg.Slots, DefaultSlots)
	s := &sharding{cfg: cfg}
	s.view = s.Place(nil)
	return s
}

// sharding is what one node knows: the view of the last list of members.
type sharding struct {
	cfg  Config
	view strategy.View
}

var _ strategy.Placer = (*sharding)(nil)

// Step heeds lists of members, of which only the last counts.
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

// Minimal is true for rendezvous and ring hashing.
func (s *sharding) Minimal() bool { return s.cfg.Second == Rendezvous || s.cfg.Second == Ring }
