package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/htmlindex"
)

// TestTextCharsets reads pages that declare their charset, and pages that do not.
func TestTextCharsets(t *testing.T) {
	tests := []struct{ charset, lang, headline, text string }{
		{"shift_jis", "ja", "灯台の本", "港の小さな駅に、だれでも本を借りられる棚ができた。返す日は決まっていない。"},
		{"euc-jp", "ja", "灯台の本", "港の小さな駅に、だれでも本を借りられる棚ができた。返す日は決まっていない。"},
		{"windows-1251", "ru", "Старая мельница", "В деревне снова заработала мельница, которую не запускали сорок лет."},
		{"gb18030", "zh", "老街的灯笼", "这家铺子开了将近一百年,如今整条街上只剩下他还在用竹子和宣纸做灯笼。"},
		{"big5", "zh", "鐘錶店", "前年颱風把招牌吹走,鄰居們一起湊錢做了一塊新的,字還是請老校長寫的。"},
		{"utf-16le", "ru", "Старая мельница", "В деревне снова заработала мельница, которую не запускали сорок лет."},
	}
	for _, tt := range tests {
		for _, meta := range []string{"<meta charset=" + tt.charset + ">", ""} {
			t.Run(tt.charset+meta, func(t *testing.T) {
				html := "<html lang=" + tt.lang + ">" + meta + "<title>" + tt.headline + "</title><h1>" + tt.headline + "</h1>" +
					"<article>" + strings.Repeat("<p>"+tt.text+"\n", 3) + "<p>2024</article>"
				got, err := Text(PageIn{HTML: encode(t, tt.charset, html), URL: "https://example.org/2024/05/17/"})
				if err != nil {
					t.Fatal(err)
				}
				got.Text, _, _ = strings.Cut(got.Text, "\n")
				want := TextOut{Title: tt.headline, Headline: tt.headline, Text: tt.text, Published: "2024-05-17", Lang: tt.lang,
					Kind: "article"}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// encode returns a page in a charset, with a byte order mark where that is usual.
func encode(t *testing.T, label, html string) []byte {
	t.Helper()
	enc, err := htmlindex.Get(label)
	if err != nil {
		t.Fatal(err)
	}
	if label == "utf-16le" {
		html = "\uFEFF" + html
	}
	out, err := enc.NewEncoder().String(html)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(out)
}

func TestTextErrors(t *testing.T) {
	tests := []struct{ name, html, want string }{
		{"no HTML", "%PDF-1.4 and so on", `main text of "https://example.org/x": the body is application/pdf, not HTML`},
		{"too large", strings.Repeat("<p>", 210_000),
			`main text of "https://example.org/x": page too large: more than 200000 elements and texts`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Text(PageIn{HTML: []byte(tt.html), URL: "https://example.org/x"}); err == nil ||
				err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
	if got, err := Text(PageIn{}); err != nil || got != (TextOut{}) {
		t.Errorf("nothing is read as %+v, %v", got, err)
	}
}
