package lang

import "slices"

// languages are the languages that results distinguish, sorted.
var languages = []string{"ar", "bo", "de", "en", "es", "fa", "fil", "fr", "hi", "id", "it", "ja", "kk", "ko", "ky",
	"lo", "mn", "ms", "my", "ne", "ps", "pt", "ru", "tg", "ur", "vi", "zh"}

// Known returns the possible values of [Result].Lang without Other.
func Known() []string { return slices.Clone(languages) }

// Current returns the code that results use for a language with several codes: fil for tl.
func Current(code string) string {
	if now, ok := renamed[code]; ok {
		return now
	}
	return code
}
