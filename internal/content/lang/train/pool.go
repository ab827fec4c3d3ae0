package main

import (
	"log"
	"math"
	"slices"
	"strings"

	"kumo/internal/content/lang/ngram"
)

// A pool has the texts of a language in a script, and its sampling weight.
type pool struct {
	lang   string
	class  int
	texts  []string
	weight float64
}

// pools groups the texts by language. All known languages have the same weight. Other languages with more text have
// larger weights.
func (p plan) pools(all texts) []pool {
	var out []pool
	var langs []string
	for g := range all {
		if g.script == p.script && all.isMainScript(g) {
			langs = append(langs, g.lang)
		}
	}
	slices.Sort(langs)
	total := 0.0
	for _, lang := range langs {
		class, g, w := p.class(lang), group{p.script, lang}, 1.0
		if class < 0 {
			continue
		}
		if class >= len(p.known) {
			w = math.Sqrt(min(1, float64(all.size(g))/200_000))
			total += w
		}
		out = append(out, pool{lang, class, all[g], w})
	}
	for i := range out {
		if out[i].class >= len(p.known) {
			out[i].weight *= p.otherShare * float64(len(p.known)) / total
		}
	}
	return out
}

// draw returns the features of a window of random length from random texts of a pool.
func (t *trainer) draw(texts []string) []uint32 {
	want := 20 + t.rng.IntN(160)
	if t.script == ngram.Hani {
		want = 4 + t.rng.IntN(60)
	}
	var b strings.Builder
	for i := t.rng.IntN(len(texts)); b.Len() < want; i = t.rng.IntN(len(texts)) {
		b.WriteString(texts[i])
		b.WriteByte('\n')
	}
	return t.features(b.String(), want)
}

// features folds a text and returns the grams of a random window of at most want letters.
func (t *trainer) features(text string, want int) []uint32 {
	folded := ngram.Fold(make([]rune, 0, len(text)+2), []byte(text), t.script)
	if extra := len(folded) - want; extra > 0 {
		from := t.rng.IntN(extra)
		folded = folded[from : from+want]
		folded[0], folded[want-1] = ' ', ' '
	}
	t.grams = t.shape.Grams(t.grams[:0], folded)
	return t.grams
}

// minPlausible is the minimum probability of its own language for a string to be kept.
const minPlausible = 0.05

// sift returns the pools without strings that seem to be in another language.
func (t *trainer) sift() []pool {
	out := slices.Clone(t.pools)
	for i, p := range out {
		var kept []string
		for _, s := range p.texts {
			if t.plausible(s, p.class) {
				kept = append(kept, s)
			}
		}
		if len(kept) > len(p.texts)/4 {
			out[i].texts = kept
		} else {
			out[i].weight /= 10
		}
		if lost := len(p.texts) - len(kept); lost > len(p.texts)/20 {
			log.Printf("%s: %s lost %d of %d strings", t.script, p.lang, lost, len(p.texts))
		}
	}
	return out
}

// plausible reports whether a string may belong to its class. Untranslated strings are in English, so English must not
// be more likely.
func (t *trainer) plausible(s string, class int) bool {
	t.predict(t.features(s, 400))
	own, english := float32(0), float32(0)
	for c, name := range t.classes {
		if name == t.classes[class] {
			own += t.score[c]
		} else if name == "en" {
			english = t.score[c]
		}
	}
	return own >= minPlausible && own >= english
}
