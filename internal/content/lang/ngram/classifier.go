// Package ngram implements a linear language classifier over the letter n-grams and words of a text.
//
// It normalizes a text to the letters of one script, hashes their n-grams and words, and converts the weights of the
// hashes to a probability for each language. It reads and writes the models that command train computes and package
// lang embeds.
package ngram

import "math"

// A Classifier is a linear model over the n-grams of a text: the score of a class is the mean of its weights over the
// grams, times Scale, plus its bias.
type Classifier struct {
	Script  Script
	Finer   bool // only tells its classes from each other, once another classifier has found one of them
	Shape   Shape
	Classes []string  // the language of each class; one language may have several
	Bias    []float32 // one a class
	Scale   float32   // what one step of a weight is worth
	// Weights has a row for each bucket, with one byte for each class, padded to whole words: a weight of w is kept as
	// w+128.
	Weights []uint64
}

// Lanes is how many weights a word holds.
const Lanes = 8

// MaxClasses is the most classes a classifier can have.
const MaxClasses = 4 * Lanes

// Stride is the number of words in a row of Weights.
func (c *Classifier) Stride() int { return (len(c.Classes) + Lanes - 1) / Lanes }

// batch is how many weights of a byte fit into a sum of 16 bits.
const batch = 256

// Sum adds the weights of the buckets to sums, class by class. Eight weights are added in one go: the words' odd and
// even bytes apart, so that each sum has 16 bits.
func (c *Classifier) Sum(sums *[MaxClasses]int32, buckets []uint32) {
	const even = 0x00FF00FF00FF00FF
	stride := c.Stride()
	for len(buckets) > 0 {
		part := buckets[:min(batch, len(buckets))]
		buckets = buckets[len(part):]
		for col := range stride {
			var lo, hi uint64
			column := c.Weights[col:]
			for _, b := range part {
				w := column[int(b)*stride]
				lo += w & even
				hi += w >> 8 & even
			}
			for lane := 0; lane < Lanes; lane += 2 {
				at := uint(8 * lane)
				sums[col*Lanes+lane] += int32(lo>>at&0xFFFF) - 128*int32(len(part))
				sums[col*Lanes+lane+1] += int32(hi>>at&0xFFFF) - 128*int32(len(part))
			}
		}
	}
}

// Probabilities turns the sums over n grams into the classes' probabilities, and appends them to dst.
func (c *Classifier) Probabilities(dst []float64, sums *[MaxClasses]int32, n int) []float64 {
	first, top, total := len(dst), math.Inf(-1), 0.0
	for i := range c.Classes {
		score := float64(c.Bias[i]) + float64(float32(sums[i])*c.Scale)/float64(max(n, 1))
		dst = append(dst, score)
		top = max(top, score)
	}
	for i := first; i < len(dst); i++ {
		dst[i] = math.Exp(dst[i] - top)
		total += dst[i]
	}
	for i := first; i < len(dst); i++ {
		dst[i] /= total
	}
	return dst
}
