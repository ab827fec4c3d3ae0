package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumo/internal/content/lang/ngram"
)

// list builds a word list: after the header, words with frequencies 1, 10^-0.01, 10^-0.02...
func list(t *testing.T, bins ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	fmt.Fprintf(z, "\xdc\x00%c\x82\xa6format\xa2cB\xa7version\x01", len(bins)+1)
	for _, bin := range bins {
		words := strings.Fields(bin)
		fmt.Fprintf(z, "%s", []byte{0x90 | byte(len(words))})
		for _, w := range words {
			fmt.Fprintf(z, "%s%s", []byte{0xa0 | byte(len(w))}, w)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFrequencies(t *testing.T) {
	bins := make([]string, 101)
	bins[0], bins[100] = "yang", "itu dan"
	got, err := frequencies(list(t, bins...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]frequency{{"yang", 1e6}, {"itu", 1e5}, {"dan", 1e5}}, got,
		cmp.AllowUnexported(frequency{})); diff != "" {
		t.Error(diff)
	}
}

func TestFrequenciesRefusesOtherLists(t *testing.T) {
	for _, content := range []string{"", "\x91", "\x92\x82\xa6format\xa2cB\xa7version\x02\x90",
		"\x92\x82\xa6format\xa2cB\xa7version\x01\x91\xa5ab",
		"\x92\x82\xa6format\xa2cB\xa7version\x01\x91\x05", "\x92\x82\xa6format\xa2cB\xa7version\x01\xa1a"} {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		fmt.Fprint(z, content)
		z.Close()
		if _, err := frequencies(b.Bytes()); !errors.Is(err, errList) {
			t.Errorf("%q: %v", content, err)
		}
	}
	if _, err := frequencies([]byte("no gzip")); err == nil {
		t.Error("no error for what is not packed")
	}
}

func TestBayes(t *testing.T) {
	words := lists{
		"id": {{"dan", 25_000}, {"bisa", 9000}, {"karena", 3000}, {"waktu", 1200}, {"boleh", 250}, {"kantor", 240}},
		"ms": {{"dan", 20_000}, {"boleh", 10_000}, {"kerana", 1600}, {"waktu", 900}, {"pejabat", 230}, {"kantor", 10}},
	}
	p := plans[slices.IndexFunc(plans, func(p plan) bool { return p.finer })]
	c := p.bayes(words)
	for text, want := range map[string]string{"karena waktu itu": "id", "kerana waktu itu": "ms", "kantor": "id",
		"boleh":     "ms",
		"dan waktu": "", "xyz": ""} {
		var sums [ngram.MaxClasses]int32
		grams := p.shape.Grams(nil, ngram.Fold(make([]rune, 0, 100), []byte(text), ngram.Latn))
		c.Sum(&sums, grams)
		probs := c.Probabilities(nil, &sums, len(grams))
		switch best := c.Classes[slices.Index(probs, slices.Max(probs))]; {
		case want == "" && probs[0] != probs[1]:
			t.Errorf("%q is %s, and has no word that tells", text, best)
		case want != "" && best != want:
			t.Errorf("%q is %s: %v", text, best, probs)
		}
	}
}
