package maintext

import (
	"strings"
	"testing"
)

func TestLanguage(t *testing.T) {
	german := strings.Repeat("Die Bibliothek schließt jeden Abend um neun Uhr. ", 5)
	swedish := strings.Repeat("Biblioteket stänger klockan nio varje kväll. ", 5)
	for _, c := range []struct{ text, declared, want string }{
		{german, "en-US", "de"},
		{swedish, "sv-SE", "sv"},
		{swedish, "", "other"},
		{"Guten Tag.", "pt-BR", "pt"},
		{"Die Bibliothek schließt um neun Uhr.", "", "de"},
		{"", "", ""},
		{"", "zh-Hant", "zh"},
	} {
		if got := (&Text{Text: c.text, Lang: c.declared}).Language(); got != c.want {
			t.Errorf("%.20q, declared %q: %q, want %q", c.text, c.declared, got, c.want)
		}
	}
}
