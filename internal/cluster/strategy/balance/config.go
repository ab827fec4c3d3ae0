package balance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/central"
)

// Config configures the strategy. Zero values mean the defaults given.
type Config struct {
	central.Config
	Splitter Splitter

	MinWork  time.Duration // a node with less work than this gets more, of slices at about a third of it; 2s
	MaxPool  int           // maximum number of pooled hosts; 20,000
	MaxLinks int           // maximum number of links to pooled hosts; 50,000
	MoveTime time.Duration // duration of a move of hosts until one was measured; 2s
	MinStay  time.Duration // minimum time between two moves of a host; 15s
	Seed     uint64        // seed of the model and the swarm
	Learning Learning
}

// Learning configures the network of the splitter Paper. Zero values mean the defaults of package model.
type Learning struct {
	Hidden    int     // units of the hidden layer
	Rate      float64 // learning rate of back-propagation
	Threshold float64 // mean error below which the training stops
}

// PaperLearning returns the defaults of the splitter Paper.
func PaperLearning() Learning {
	return Learning{model.DefaultHidden, model.PaperRate, model.PaperThreshold}
}

// Check returns an error unless all values are possible.
func (l Learning) Check() error {
	switch {
	case l.Hidden < 1 || l.Hidden > maxHidden:
		return fmt.Errorf("hidden units: %d is not from 1 to %d", l.Hidden, maxHidden)
	case !(l.Rate > 0 && l.Rate <= 1):
		return fmt.Errorf("learning rate: %v is not above 0 and at most 1", l.Rate)
	case !(l.Threshold > 0 && l.Threshold <= 1):
		return fmt.Errorf("error threshold: %v is not above 0 and at most 1", l.Threshold)
	}
	return nil
}

// maxHidden bounds the cost of a training.
const maxHidden = 200

// LAN returns the configuration for nodes in one place.
func LAN() Config { return Config{}.withDefaults() }

// WAN returns the configuration for nodes that are far from each other.
func WAN() Config {
	return Config{Config: central.Config{
		Retry:        2 * time.Second,
		Beat:         2 * time.Second,
		Silence:      7 * time.Second,
		DecisionWait: 5 * time.Second,
		GatherTime:   4 * time.Second,
		JoinTimeout:  time.Minute,
	}, MinWork: 5 * time.Second, MoveTime: 5 * time.Second, MinStay: time.Minute}.withDefaults()
}

func (c Config) withDefaults() Config {
	c.MinWork, c.MoveTime = cmp.Or(c.MinWork, 2*time.Second), cmp.Or(c.MoveTime, 2*time.Second)
	c.MinStay = cmp.Or(c.MinStay, 15*time.Second)
	c.OfferCooldown = cmp.Or(c.OfferCooldown, c.MinStay)
	c.Config = c.Config.WithDefaults()
	if c.Splitter == Exact {
		c.ShortBeat = cmp.Or(c.ShortBeat, c.Beat/5)
	}
	c.MaxPool, c.MaxLinks = cmp.Or(c.MaxPool, 20_000), cmp.Or(c.MaxLinks, 50_000)
	return c
}

// A Splitter is a method to split pending URLs among nodes.
type Splitter uint8

// Splitters.
const (
	Exact Splitter = iota // shortest makespan, in pieces
	Paper                 // the paper's: its network and swarm; each batch is split once
	Even                  // equal numbers of links
	Hash                  // hash of the host name
)

var splitters = []string{"exact", "paper", "even", "hash"}

// String returns the splitter's name.
func (s Splitter) String() string { return splitters[min(int(s), len(splitters)-1)] }

// Splitters returns the names of all splitters.
func Splitters() []string { return append([]string(nil), splitters...) }

// ParseSplitter returns the splitter with a name; "" means exact.
func ParseSplitter(name string) (Splitter, error) {
	if i := slices.Index(splitters, cmp.Or(name, splitters[0])); i >= 0 {
		return Splitter(i), nil
	}
	return 0, fmt.Errorf("unknown splitter %q; use one of %s", name, strings.Join(splitters, ", "))
}

// predicts reports whether the splitter uses predictions.
func (s Splitter) predicts() bool { return s == Exact || s == Paper }
