package main

import (
	"log"
	"math"
	"slices"
	"strings"

	"kumo/internal/content/lang/ngram"
)

// A pool is the text of one language in a script, and how often it is drawn.
type pool struct {
	lang   string
	class  int
	texts  []string
	weight float64
}

// pools sorts the texts by class. A known language is drawn as often as any other known one; of the others, those with
// much text more often.
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

// draw takes a window of a random length from a random place of a pool.
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

// features folds a text and takes a window of at most want letters from it.
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

// minPlausible is the probability of its own language below which a string is put away.
const minPlausible = 0.05

// sift returns the pools without the strings that seem to be in another language.
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

// plausible reports whether a string can be of its class. English is what is left where nothing was translated: it must
// not be the likelier one.
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
