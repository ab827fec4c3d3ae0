//go:build lingua

// lingua-go has 124 MB of models, so it is compiled with -tags lingua only.

package choices

import (
	"strings"

	"github.com/pemistahl/lingua-go"
)

func init() {
	all := lingua.NewLanguageDetectorBuilder().FromAllLanguages()
	for name, detector := range map[string]lingua.LanguageDetector{
		"lingua-go":               all.Build(),
		"lingua-go, low accuracy": all.WithLowAccuracyMode().Build(),
	} {
		tellers = append(tellers, teller{name, func(text string) string {
			l, ok := detector.DetectLanguageOf(text)
			if !ok {
				return ""
			}
			return strings.ToLower(l.IsoCode639_1().String())
		}})
	}
}
