package maintext

import (
	"strings"

	"kumo/internal/lang"
)

const (
	someLetters = 100 // bytes of text that a declaration is better than
	fewLetters  = 20  // bytes of text that say nothing of a language
)

// Language is the language of the main text: as it is told from the text, or else the declared one without script and region.
// Pages declare what their template was made for.
func (t *Text) Language() string {
	declared, _, _ := strings.Cut(t.Lang, "-")
	if len(t.Text) < someLetters && declared != "" || len(t.Text) < fewLetters {
		return declared
	}
	if told := lang.Detect(t.Text).Lang; told != lang.Other || declared == "" {
		return told
	}
	return declared
}
