package main

import (
	"math"
	"slices"

	"kumo/internal/content/lang/ngram"
)

// quantise converts weights, with a row for each bucket, to bytes. It clips the few largest, which gives the others a
// finer resolution.
func (p plan) quantise(weights, bias []float32) *ngram.Classifier {
	classes := p.classes()
	c := &ngram.Classifier{Script: p.script, Finer: p.finer, Shape: p.shape, Classes: classes, Bias: slices.Clone(bias)}
	for i := len(p.known); i < len(c.Bias); i++ {
		c.Bias[i] -= p.penalty
	}
	unit := largest(weights) / 127
	c.Scale = float32(unit * gain)
	stride, k := c.Stride(), len(classes)
	c.Weights = make([]uint64, stride<<p.shape.Bits)
	for i, w := range weights {
		b, class := i/k, i%k
		step := int(math.Round(float64(max(-127, min(127, w/unit)))))
		c.Weights[b*stride+class/ngram.Lanes] |= uint64(step+128) << (8 * (class % ngram.Lanes))
	}
	return c
}

// largest returns the absolute value that one in a thousand nonzero weights exceeds.
func largest(weights []float32) float32 {
	var sizes []float32
	for _, w := range weights {
		if w != 0 {
			sizes = append(sizes, max(w, -w))
		}
	}
	slices.Sort(sizes)
	return sizes[len(sizes)*999/1000]
}
