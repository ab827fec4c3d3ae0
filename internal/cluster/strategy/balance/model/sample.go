package model

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Machine is what a node has to crawl with. Zero means unknown, and counts as the middle of what other nodes have.
type Machine struct {
	Cores       float64 `json:"cores"` // CPUs that it may use; a fraction if it is limited to less than one
	GHz         float64 `json:"ghz"`
	MemoryGB    float64 `json:"memory_gb"`
	NetworkMbps float64 `json:"network_mbps"` // megabits a second
	DiskMbps    float64 `json:"disk_mbps"`    // megabits a second
}

// facts is how many figures a Machine has.
const facts = 5

func (m Machine) facts() [facts]float64 {
	return [...]float64{m.Cores, m.GHz, m.MemoryGB, m.NetworkMbps, m.DiskMbps}
}

// A Sample is one finished assignment: how long a node took for so many URLs.
type Sample struct {
	Node    string  `json:"node"` // names the machine, in this crawl and in later ones
	Machine         // as it was then
	URLs    int     `json:"urls"`
	Seconds float64 `json:"seconds"`
}

// ErrSample says that nothing can be learnt from a sample.
var ErrSample = errors.New("bad sample")

const (
	maxFigure = 1e12 // of a machine's facts, URLs and seconds
	minTime   = 1e-9 // seconds
	maxName   = 1024 // bytes
)

// Check returns an error that wraps ErrSample unless the node's name is text of 1 to 1,024 bytes without control
// characters, there are 1 to 1e12 URLs, the time is 1e-9 to 1e12 seconds, and no fact is negative or above 1e12.
func (s Sample) Check() error {
	switch {
	case s.Node == "" || len(s.Node) > maxName || !utf8.ValidString(s.Node),
		strings.ContainsFunc(s.Node, unicode.IsControl):
		return fmt.Errorf("%w: %q cannot be a node's name", ErrSample, s.Node[:min(len(s.Node), 40)])
	case s.URLs < 1 || float64(s.URLs) > maxFigure:
		return fmt.Errorf("%w of node %q: %d URLs", ErrSample, s.Node, s.URLs)
	case !(s.Seconds >= minTime && s.Seconds <= maxFigure): // so is NaN
		return fmt.Errorf("%w of node %q: %v seconds", ErrSample, s.Node, s.Seconds)
	}
	for i, f := range s.facts() {
		if !(f >= 0 && f <= maxFigure) {
			return fmt.Errorf("%w of node %q: %s %v", ErrSample, s.Node, columns[1+i], f)
		}
	}
	return nil
}
