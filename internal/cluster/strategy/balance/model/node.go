package model

import (
	"math"
	"slices"
)

const (
	residualDecay  = 0.9 // weight of a residual relative to the node's next one
	priorResiduals = 2   // residuals of 0 that are added to a node's own
)

// updateNodes recomputes the pace and correction factor of all nodes.
func (m *Model) updateNodes() {
	clear(m.pace)
	clear(m.factor)
	for node := range m.samples.nodes {
		m.updateNode(node)
	}
}

// updateNode computes a node's pace and its correction factor, from the weighted mean of its residuals. Residuals are
// logarithms of true by predicted seconds; newer ones have more weight. With few samples the mean is close to 0.
func (m *Model) updateNode(node string) {
	records := m.samples.nodes[node]
	var pages, seconds, residuals, weights float64
	weight := 1.0
	for _, rec := range slices.Backward(records) {
		if rec.Held {
			continue
		}
		pages, seconds = pages+float64(rec.URLs), seconds+rec.Seconds
		if m.net != nil && !m.config.Paper {
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
