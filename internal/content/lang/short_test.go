package lang

import "testing"

// Short texts without words have no language.
func TestShortTextsWithoutWords(t *testing.T) {
	for text, want := range map[string]string{
		"line1 line2 q x": Other, "func main() { fmt.Println(x) }": Other, "http://a.test/x http://b.test/y": Other,
		"GET /index.html HTTP/1.1": Other, "x = y + 1; return x": Other, "print(len(sys.argv))": Other,
		"Guten Tag": "de", "¿Dónde está la estación?": "es", "L’état, c’est moi": "fr", "Contact us": "en",
		"Am 3.5.2024 fährt der Zug um 10:30": "de",
	} {
		if got := Detect(text).Lang; got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
