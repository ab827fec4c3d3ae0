package words

import (
	snowball "github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/irish"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/blevesearch/snowballstem/turkish"
)

type stemmer func(*snowball.Env) bool

var stemmers = map[string]stemmer{"ar": arabic.Stem, "da": danish.Stem, "de": german.Stem, "en": english.Stem,
	"es": spanish.Stem, "fi": finnish.Stem, "fr": french.Stem, "ga": irish.Stem, "hu": hungarian.Stem, "it": italian.Stem,
	"nb": norwegian.Stem, "nl": dutch.Stem, "no": norwegian.Stem, "pt": portuguese.Stem, "ro": romanian.Stem,
	"ru": russian.Stem, "sv": swedish.Stem, "ta": tamil.Stem, "tr": turkish.Stem}

// Stems reports whether words of a language are stemmed.
func Stems(lang string) bool { return stemmers[lang] != nil }

// An environment is the state of the stemmers.
type environment struct{ env *snowball.Env }

// stem returns the stem of a word, or the word itself if there is none. The stemmers are generated code for natural
// words; a panic on other input is recovered.
func (e *environment) stem(f stemmer, word string) (stem string) {
	defer func() {
		if recover() != nil || stem == "" {
			stem, e.env = word, nil
		}
	}()
	if e.env == nil {
		e.env = snowball.NewEnv("")
	}
	e.env.SetCurrent(word)
	f(e.env)
	return e.env.Current()
}
