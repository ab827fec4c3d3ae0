package lang

import "strings"

const (
	enoughText = 100 // bytes of text from which detection takes precedence over a declaration
	minText    = 20  // bytes of text below which nothing is detected
)

// renamed has outdated language codes that pages still use, and their replacements.
var renamed = map[string]string{"tl": "fil", "in": "id", "iw": "he", "ji": "yi", "no": "nb"}

// Of returns the language of a text with a declared language, a BCP 47 tag or "". It is the detected language if the
// text is long enough and its language is known. Otherwise it is the declared language without script and region.
// Detection takes precedence because declarations often belong to a page's template.
func Of[T ~string | ~[]byte](text T, declared string) string {
	declared, _, _ = strings.Cut(strings.ToLower(declared), "-")
	declared = Current(declared)
	if len(text) < enoughText && declared != "" || len(text) < minText {
		return declared
	}
	if told := Detect(text).Lang; told != Other || declared == "" {
		return told
	}
	return declared
}
