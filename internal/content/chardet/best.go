package chardet

import "math"

// asciiBits is what a character of ASCII takes by any model, where nothing else is known.
const asciiBits = 4.5

// maxMargin is the margin in bits from which on it does not matter how much further another charset is off.
const maxMargin = 60

// A verdict is what the best of a charset's models says.
type verdict struct {
	name   string
	scorer scorer
	bits   float64
	table  *table // nil for charsets of several bytes
}

// A scorer says how many bits a text takes by a model. It may stop where that is more than limit.
type scorer interface {
	bits(gist []byte, limit float64) float64
}

// sampleSize is how much of a text is read by all models; most are out of the question then.
const sampleSize = 512

// best compares all models.
func best(gist []byte) Result {
	_, few := compare(candidates(), gist[:min(len(gist), sampleSize)])
	first, few := compare(few, gist)
	return Result{first.name, confidence(first, few, gist)}
}

func candidates() []verdict {
	var all []verdict
	for i := range multiBytes {
		all = append(all, verdict{name: multiBytes[i].name, scorer: &multiBytes[i]})
	}
	for _, m := range singleModels() {
		all = append(all, verdict{name: m.name, scorer: m, table: m.table})
	}
	return all
}

// compare finds the best, and those that are not far behind.
func compare(all []verdict, gist []byte) (first verdict, near []verdict) {
	first.bits = math.Inf(1)
	for i := range all {
		all[i].bits = all[i].scorer.bits(gist, first.bits+maxMargin)
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

// confidence goes by the margin to the next charset in which the text reads otherwise. A few letters are no proof in
// any case.
func confidence(first verdict, others []verdict, gist []byte) float64 {
	margin := float64(maxMargin)
	for _, v := range others {
		if v.name != first.name && v.bits < first.bits+margin && !readAlike(first.table, v.table, gist) {
			margin = v.bits - first.bits
		}
	}
	sure := math.Round(100*(1-0.5*math.Exp2(-margin/6))) / 100
	return min(sure, 0.99) * min(float64(countHigh(gist))/4, 1)
}

// readAlike reports whether the text reads alike in both charsets.
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

// countHigh is the number of bytes that are not ASCII.
func countHigh(gist []byte) (n int) {
	for _, c := range gist {
		if c >= 0x80 {
			n++
		}
	}
	return n
}
