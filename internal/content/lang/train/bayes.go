package main

import (
	"math"

	"kumo/internal/content/lang/ngram"
)

const (
	smooth = 0.5 // added to how often a word occurs in a million: lists end at one
	// log odds that two lists of one language might differ by: one has more films, the other more encyclopedia
	listNoise = 0.3
)

// bayes makes a classifier of two languages by naive Bayes over words: a word's weight is the logarithm of how much
// oftener it is in the first, less what may be chance. A word that is in neither list has the weight 0. In a linear
// model that is fitted to texts, the weights of rare words are as large as those of frequent ones; two languages that
// share most words are then told by what the texts happen to be about.
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
