package model

import (
	"math"
	"slices"
)

const (
	residualDecay  = 0.9 // what a residual counts by the next one of its node
	priorResiduals = 2   // residuals that say 0, and are put beside a node's own
)

// updateNodes finds anew what is known of single nodes.
func (m *Model) updateNodes() {
	clear(m.pace)
	clear(m.factor)
	for node := range m.samples.nodes {
		m.updateNode(node)
	}
}

// updateNode finds a node's pace, and by what factor it differs from machines like it: residuals are logarithms of true
// by predicted seconds; of their mean the newest are the greater part, and the fewer there are, the nearer it is to 0.
func (m *Model) updateNode(node string) {
	records := m.samples.nodes[node]
	var pages, seconds, residuals, weights float64
	weight := 1.0
	for _, rec := range slices.Backward(records) {
		if rec.Held {
			continue
		}
		pages, seconds = pages+float64(rec.URLs), seconds+rec.Seconds
		if m.net != nil {
			predicted := m.machineTime(rec.Machine, 1)(rec.URLs)
			residuals += weight * math.Log(rec.Seconds/predicted)
		}
		weights += weight
		weight *= residualDecay
	}
	if pages == 0 {
		return
	}
	m.pace[node] = pages / seconds
	m.factor[node] = math.Exp(residuals / (weights + priorResiduals))
}
