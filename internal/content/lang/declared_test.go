package lang

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	german := strings.Repeat("Die Bibliothek schließt jeden Abend um neun Uhr. ", 5)
	swedish := strings.Repeat("Biblioteket stänger klockan nio varje kväll. ", 5)
	for _, c := range []struct{ text, declared, want string }{
		{german, "en-US", "de"},
		{swedish, "sv-SE", "sv"},
		{swedish, "", "other"},
		{"Guten Tag.", "pt-BR", "pt"},
		{"Magandang umaga po.", "TL", "fil"},
		{"Die Bibliothek schließt um neun Uhr.", "", "de"},
		{"", "", ""},
		{"", "zh-Hant", "zh"},
	} {
		if got := Of(c.text, c.declared); got != c.want {
			t.Errorf("%.20q, declared %q: %q, want %q", c.text, c.declared, got, c.want)
		}
	}
}
