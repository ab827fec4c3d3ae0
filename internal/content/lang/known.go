package lang

import "slices"

// languages are the languages that have a name in results, sorted.
var languages = []string{"ar", "bo", "de", "en", "es", "fa", "fil", "fr", "hi", "id", "it", "ja", "kk", "ko", "ky",
	"lo", "mn", "ms", "my", "ne", "ps", "pt", "ru", "tg", "ur", "vi", "zh"}

// Known are the languages that are told from others, as in [Result].Lang.
func Known() []string { return slices.Clone(languages) }

// Current is the code that results have for a language, where pages and people also write another one: fil for tl.
func Current(code string) string {
	if now, ok := renamed[code]; ok {
		return now
	}
	return code
}
