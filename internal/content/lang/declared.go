package lang

import "strings"

const (
	enoughText = 100 // bytes of text that a declaration is better than
	minText    = 20  // bytes of text that say nothing
)

// renamed are codes by which pages still call languages that have another now.
var renamed = map[string]string{"tl": "fil", "in": "id", "iw": "he", "ji": "yi", "no": "nb"}

// Of is the language of a text for which one is declared, as a BCP 47 tag, or "": the one that the text is in, as far
// as that can be told, otherwise the declared one without script and region. Pages declare what their template was made
// for, so that the text counts more, if there is enough of it.
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
