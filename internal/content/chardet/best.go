package chardet

import (
	"math"
	"slices"
)

// asciiBits is the cost of an ASCII character in any model.
const asciiBits = 4.5

// maxMargin is the margin in bits above which the differences between charsets do not matter.
const maxMargin = 60

// A verdict is the result of a model for a text.
type verdict struct {
	name   string
	scorer scorer
	bits   float64
	table  *table // nil for multi-byte charsets
	lang   string // "" for multi-byte charsets
	prior  float64
}

// A scorer computes the number of bits of a text in a model. It may stop when the number exceeds limit.
type scorer interface {
	bits(gist []byte, limit float64) float64
}

// sampleSize is the number of bytes to which all models are applied. Few models remain candidates after that.
const sampleSize = 512

// best returns the charset of the best model.
func best(gist []byte, lang string) Result {
	_, few := compare(candidates(lang), gist[:min(len(gist), sampleSize)])
	first, few := compare(few, gist)
	high := countHigh(gist)
	if lang != "" && first.lang == lang {
		high *= 2
	}
	return Result{first.name, confidence(first, few, gist, high)}
}

// otherLanguage is the cost in bits of a charset and a language, if the text declares another one.
const otherLanguage = 15

// candidates returns all models. If one has the declared language, those of other languages get a cost.
func candidates(lang string) []verdict {
	var all []verdict
	for i := range multiBytes {
		all = append(all, verdict{name: multiBytes[i].name, scorer: &multiBytes[i]})
	}
	for _, m := range singleModels() {
		all = append(all, verdict{name: m.name, scorer: m, table: m.table, lang: m.lang})
	}
	if lang != "" && slices.ContainsFunc(all, func(v verdict) bool { return v.lang == lang }) {
		for i := range all {
			if all[i].lang != lang {
				all[i].prior = otherLanguage
			}
		}
	}
	return all
}

// compare returns the best model, and all models within maxMargin of it.
func compare(all []verdict, gist []byte) (first verdict, near []verdict) {
	first.bits = math.Inf(1)
	for i := range all {
		all[i].bits = all[i].prior + all[i].scorer.bits(gist, first.bits+maxMargin)
		if all[i].bits < first.bits {
			first = all[i]
		}
	}
	for _, v := range all {
		if v.bits <= first.bits+maxMargin {
			near = append(near, v)
		}
	}
	return first, near
}

// confidence depends on the margin to the next charset that decodes the text differently. It is low if the text has
// only a few non-ASCII bytes, of which high is the number.
func confidence(first verdict, others []verdict, gist []byte, high int) float64 {
	margin := float64(maxMargin)
	for _, v := range others {
		if v.name != first.name && v.bits < first.bits+margin && !readAlike(first.table, v.table, gist) {
			margin = v.bits - first.bits
		}
	}
	sure := math.Round(100*(1-0.5*math.Exp2(-margin/6))) / 100
	return min(sure, 0.99) * min(float64(high)/4, 1)
}

// readAlike reports whether two charsets decode the text identically.
func readAlike(a, b *table, gist []byte) bool {
	if a == nil || b == nil {
		return false
	}
	for _, c := range gist {
		if c >= 0x80 && a[c-0x80] != b[c-0x80] {
			return false
		}
	}
	return true
}

// countHigh returns the number of non-ASCII bytes.
func countHigh(gist []byte) (n int) {
	for _, c := range gist {
		if c >= 0x80 {
			n++
		}
	}
	return n
}
