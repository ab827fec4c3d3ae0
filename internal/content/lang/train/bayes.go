package main

import (
	"math"

	"kumo/internal/content/lang/ngram"
)

const (
	smooth = 0.5 // added to the frequency per million, because lists end at one
	// log odds by which two lists of one language may differ, if one is based more on films and the other on
	// encyclopedias
	listNoise = 0.3
)

// bayes builds a classifier of two languages by naive Bayes over words. The weight of a word is the logarithm of the
// ratio of its frequencies, reduced by listNoise. A word in neither list has weight 0. A linear model fitted to texts
// would give rare words weights as large as those of frequent words. Two languages that share most words would then be
// distinguished by the topics of the training texts.
func (p plan) bayes(all lists) *ngram.Classifier {
	var often [2][]float64
	for class, lang := range p.known {
		often[class] = make([]float64, 1<<p.shape.Bits)
		for _, f := range all[lang] {
			folded := ngram.Fold(make([]rune, 0, len(f.word)+2), []byte(f.word), p.script)
			for _, b := range p.shape.Grams(nil, folded) {
				often[class][b] += f.perMillion
			}
		}
	}
	weights := make([]float32, 2<<p.shape.Bits)
	for b := range often[0] {
		odds := math.Log((often[0][b] + smooth) / (often[1][b] + smooth))
		weights[2*b] = float32(math.Copysign(max(0, math.Abs(odds)-listNoise), odds))
	}
	return p.quantise(weights, []float32{0, 0})
}
