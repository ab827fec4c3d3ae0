package main

import (
	"log"
	"math"
	"math/rand/v2"
	"slices"

	"kumo/internal/content/lang/ngram"
)

const (
	gain = 16  // factor of the mean weight in the score
	rate = 0.4 // initial learning rate
)

// A trainer fits a classifier by stochastic gradient descent on the softmax loss. Each weight has its own learning rate
// (AdaGrad: Duchi, Hazan and Singer, 2011), so that rare grams are learned in few steps.
type trainer struct {
	plan
	classes      []string
	rng          *rand.Rand
	pools        []pool
	weight, seen []float32 // a row per bucket with a column per class
	bias         []float32
	score        []float32
	grams        []uint32
}

// build trains a classifier in rounds. After each round except the last, it removes strings that the classifier assigns
// to another language with confidence: catalogs contain untranslated strings, names and quotations.
func (p plan) build(all texts, samples, rounds int) *ngram.Classifier {
	var t *trainer
	pools := p.pools(all)
	for round := range rounds {
		t = &trainer{plan: p, classes: p.classes(), rng: rand.New(rand.NewPCG(1, uint64(p.script))), pools: pools}
		n := len(t.classes) << p.shape.Bits
		t.weight, t.seen = make([]float32, n), make([]float32, n)
		t.bias, t.score = make([]float32, len(t.classes)), make([]float32, len(t.classes))
		loss := t.descend(samples)
		if round < rounds-1 {
			pools = t.sift()
		}
		log.Printf("%s: round %d, loss %.4f", p.script, round+1, loss)
	}
	return p.quantise(t.weight, t.bias)
}

// descend trains on the given number of texts and returns the mean loss over the last tenth.
func (t *trainer) descend(samples int) float64 {
	var upto []float64
	sum := 0.0
	for _, p := range t.pools {
		sum += p.weight
		upto = append(upto, sum)
	}
	loss := 0.0
	for i := range samples {
		at, _ := slices.BinarySearch(upto, t.rng.Float64()*sum)
		p := t.pools[min(at, len(t.pools)-1)]
		l := t.step(p.class, t.draw(p.texts), rate*float32(samples-i)/float32(samples))
		if i >= samples-samples/10 {
			loss += l
		}
	}
	return loss / float64(max(1, samples/10))
}

// step trains on a text and returns the loss before.
func (t *trainer) step(class int, grams []uint32, rate float32) float64 {
	if len(grams) == 0 {
		return 0
	}
	k := len(t.classes)
	t.predict(grams)
	loss := -math.Log(float64(max(t.score[class], 1e-9)))
	t.score[class]--
	part := gain / float32(len(grams))
	for c, g := range t.score {
		t.bias[c] -= float32(rate * 0.01 * g)
	}
	for _, b := range grams {
		w, s := t.weight[int(b)*k:][:k], t.seen[int(b)*k:][:k]
		for c, g := range t.score {
			g = float32(g * part)
			s[c] += float32(g * g)
			w[c] -= float32(rate * g / float32(math.Sqrt(float64(s[c])+1e-4)))
		}
	}
	return loss
}

// predict computes the class probabilities in score.
func (t *trainer) predict(grams []uint32) {
	k := len(t.classes)
	clear(t.score)
	for _, b := range grams {
		for c, w := range t.weight[int(b)*k:][:k] {
			t.score[c] += w
		}
	}
	part, top := gain/float32(max(1, len(grams))), float32(math.Inf(-1))
	for c := range t.score {
		t.score[c] = float32(t.score[c]*part) + t.bias[c]
		top = max(top, t.score[c])
	}
	sum := float32(0)
	for c, s := range t.score {
		t.score[c] = float32(math.Exp(float64(s - top)))
		sum += t.score[c]
	}
	for c := range t.score {
		t.score[c] /= sum
	}
}
