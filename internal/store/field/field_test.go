package field

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                "plain",
		"a\r\nWARC/1.1":        "a  WARC/1.1",
		"\x00\x7f\u0085\u2028": "    ",
		"bad \xff byte":        "bad \ufffd byte",
		"ünï 蜘蛛":               "ünï 蜘蛛",
	} {
		if got := string(Line(nil, in)); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestToken(t *testing.T) {
	for in, want := range map[string]string{
		"":                     "-",
		"http://a/b?c=d":       "http://a/b?c=d",
		"http://a/b c\nd\te":   "http://a/b%20c%0Ad%09e",
		"x\u00a0y\u3000z\x7f":  "x\ufffdy\ufffdz%7F",
		"http://a/\xe4\u2028b": "http://a/\ufffd\ufffdb",
	} {
		if got := string(Token(nil, in)); got != want {
			t.Errorf("Token(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzFields holds the promises for any text: JSON reads back as the same text, and nothing leaves its line or column.
func FuzzFields(f *testing.F) {
	for _, s := range []string{"", "a\"b\\c", "\x00\x1f\u2028\u2029\u0085", "\xff\xfe", "\ufffd", "日本 語", "a\r\nb", "\u009b31m\x7f", "exe\u202egnp.x\u2066\u061c\u200f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line := JSON(nil, s)
		var got string
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("JSON(%q) = %s: %v", s, line, err)
		}
		if want := string([]rune(s)); got != want {
			t.Errorf("JSON(%q) reads back as %q", s, got)
		}
		if strings.ContainsFunc(string(line), func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
			t.Errorf("JSON(%q) holds control characters, or marks of direction: %q", s, line)
		}
		if out := string(Line(nil, s)); strings.ContainsFunc(out, unicode.IsControl) || !utf8.ValidString(out) {
			t.Errorf("Line(%q) = %q", s, out)
		}
		if out := string(Token(nil, s)); len(strings.Fields(out)) > 1 || strings.ContainsFunc(out, unicode.IsControl) {
			t.Errorf("Token(%q) = %q", s, out)
		}
	})
}
