package model

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Machine is a node's hardware. Zero values are unknown, and count as the middle of the range.
type Machine struct {
	Cores       float64 `json:"cores"` // CPUs available to the node; may be below 1 with a CPU limit
	GHz         float64 `json:"ghz"`
	MemoryGB    float64 `json:"memory_gb"`
	NetworkMbps float64 `json:"network_mbps"` // megabits per second
	DiskMbps    float64 `json:"disk_mbps"`    // megabits per second
}

// facts is the number of figures in a Machine.
const facts = 5

func (m Machine) facts() [facts]float64 {
	return [...]float64{m.Cores, m.GHz, m.MemoryGB, m.NetworkMbps, m.DiskMbps}
}

// A Sample is a finished assignment: how long a node took for a number of URLs.
type Sample struct {
	Node    string  `json:"node"` // identifies the machine, also in later crawls
	Machine         // at that time
	URLs    int     `json:"urls"`
	Seconds float64 `json:"seconds"`
}

// ErrSample is the error of samples that cannot be used.
var ErrSample = errors.New("bad sample")

const (
	maxFigure = 1e12 // of a machine's figures, URLs and seconds
	minTime   = 1e-9 // seconds
	maxName   = 1024 // bytes
)

// Check returns an error that wraps ErrSample unless the node's name is text of 1 to 1,024 bytes without control
// characters, there are 1 to 1e12 URLs, the time is 1e-9 to 1e12 seconds, and all machine figures are 0 to 1e12.
func (s Sample) Check() error {
	switch {
	case s.Node == "" || len(s.Node) > maxName || !utf8.ValidString(s.Node),
		strings.ContainsFunc(s.Node, unicode.IsControl):
		return fmt.Errorf("%w: invalid node name %q", ErrSample, s.Node[:min(len(s.Node), 40)])
	case s.URLs < 1 || float64(s.URLs) > maxFigure:
		return fmt.Errorf("%w of node %q: %d URLs", ErrSample, s.Node, s.URLs)
	case !(s.Seconds >= minTime && s.Seconds <= maxFigure): // also rejects NaN
		return fmt.Errorf("%w of node %q: %v seconds", ErrSample, s.Node, s.Seconds)
	}
	for i, f := range s.facts() {
		if !(f >= 0 && f <= maxFigure) {
			return fmt.Errorf("%w of node %q: %s %v", ErrSample, s.Node, columns[1+i], f)
		}
	}
	return nil
}
