package check

import (
	"math"

	"kumo/internal/lang"
)

// LangIn is a text in UTF-8.
type LangIn struct {
	Text string `json:"text"`
}

// LangOut is the language that the text's beginning is in.
type LangOut struct {
	Lang       string  `json:"lang"`       // ISO 639-1, or 639-3 where there is none; "other" for none of the known
	Script     string  `json:"script"`     // ISO 15924
	Confidence float64 `json:"confidence"` // 0 to 1
}

// Lang tells a text's language.
func Lang(in LangIn) (LangOut, error) {
	out := LangOut(lang.Detect(in.Text))
	out.Confidence = math.Round(1e4*out.Confidence) / 1e4
	return out, nil
}
