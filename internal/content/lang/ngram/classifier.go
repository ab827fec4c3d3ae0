// Package ngram implements a linear language classifier over the letter n-grams and words of a text.
//
// It normalizes a text to the letters of one script, hashes their n-grams and words, and converts the weights of the
// hashes to a probability for each language. It reads and writes the models that command train computes and package
// lang embeds.
package ngram

import "math"

// A Classifier is a linear model over the n-grams of a text. The score of a class is the mean of its weights over the
// n-grams, times Scale, plus its bias.
type Classifier struct {
	Script  Script
	Finer   bool // distinguishes its classes only after another classifier has found one of them
	Shape   Shape
	Classes []string  // language of each class; a language may have several
	Bias    []float32 // per class
	Scale   float32   // factor of the integer weights
	// Weights has a row for each bucket, with one byte per class, padded to whole words. A byte is the weight plus 128.
	Weights []uint64
}

// Lanes is the number of weights in a word.
const Lanes = 8

// MaxClasses is the maximum number of classes of a classifier.
const MaxClasses = 4 * Lanes

// Stride returns the number of words in a row of Weights.
func (c *Classifier) Stride() int { return (len(c.Classes) + Lanes - 1) / Lanes }

// batch is the number of byte weights whose sum fits into 16 bits.
const batch = 256

// Sum adds the weights of the buckets to sums, by class. It adds sixteen weights at once: two adjacent words of a row,
// of which the odd and even bytes are summed separately, so that each sum has 16 bits.
func (c *Classifier) Sum(sums *[MaxClasses]int32, buckets []uint32) {
	const even = 0x00FF00FF00FF00FF
	stride := c.Stride()
	for len(buckets) > 0 {
		part := buckets[:min(batch, len(buckets))]
		buckets = buckets[len(part):]
		col := 0
		for ; col+1 < stride; col += 2 {
			var lo, hi, lo2, hi2 uint64
			columns := c.Weights[col:]
			for _, b := range part {
				row := columns[int(b)*stride:][:2]
				lo += row[0] & even
				hi += row[0] >> 8 & even
				lo2 += row[1] & even
				hi2 += row[1] >> 8 & even
			}
			addLanes(sums[col*Lanes:], lo, hi, len(part))
			addLanes(sums[(col+1)*Lanes:], lo2, hi2, len(part))
		}
		if col < stride {
			var lo, hi uint64
			column := c.Weights[col:]
			for _, b := range part {
				w := column[int(b)*stride]
				lo += w & even
				hi += w >> 8 & even
			}
			addLanes(sums[col*Lanes:], lo, hi, len(part))
		}
	}
}

// addLanes adds the sums of n words' bytes to those of their classes: lo has the even bytes, hi the odd ones.
func addLanes(sums []int32, lo, hi uint64, n int) {
	for lane := 0; lane < Lanes; lane += 2 {
		at := uint(8 * lane)
		sums[lane] += int32(lo>>at&0xFFFF) - 128*int32(n)
		sums[lane+1] += int32(hi>>at&0xFFFF) - 128*int32(n)
	}
}

// Probabilities converts the sums over n n-grams to class probabilities, and appends these to dst.
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
