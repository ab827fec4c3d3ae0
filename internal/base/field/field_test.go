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

// unseen reports whether a character is a control character, a line separator or a format character.
func unseen(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// TestJSONShowsWhatNobodySees tests all of Unicode: invisible characters are escaped, and no others.
func TestJSONShowsWhatNobodySees(t *testing.T) {
	n := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		line := string(JSON(nil, string(r)))
		var back string
		if err := json.Unmarshal([]byte(line), &back); err != nil || back != string(r) {
			t.Fatalf("%U is written as %s, and reads back as %q (%v)", r, line, back, err)
		}
		escaped := strings.HasPrefix(line, `"\`)
		if hide := unseen(r); escaped != (hide || r == '"' || r == '\\') {
			t.Errorf("%U is written as %s", r, line)
		} else if hide {
			n++
		}
	}
	for _, r := range "\ufeff\u200b\u2060\u00ad\u2028\u2029\u061c\U000e0041" {
		if !unseen(r) {
			t.Errorf("%U is not looked at", r)
		}
	}
	if n < 65+150 {
		t.Errorf("%d characters are escaped: C0, DEL and C1 alone are 65", n)
	}
}

// FuzzFields tests for any text that JSON reads back as the same text, and that nothing leaves its line or column.
func FuzzFields(f *testing.F) {
	for _, s := range []string{"", "a\"b\\c", "\x00\x1f\u2028\u2029\u0085", "\xff\xfe", "\ufffd", "日本 語", "a\r\nb",
		"\u009b31m\x7f", "exe\u202egnp.x\u2066\u061c\u200f", "\ufeff\u200b\u00ad\U000e0041"} {
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
		if strings.ContainsFunc(string(line), unseen) {
			t.Errorf("JSON(%q) holds characters that nobody sees: %q", s, line)
		}
		if out := string(Line(nil, s)); strings.ContainsFunc(out, unicode.IsControl) || !utf8.ValidString(out) {
			t.Errorf("Line(%q) = %q", s, out)
		}
		if out := string(Token(nil, s)); len(strings.Fields(out)) > 1 || strings.ContainsFunc(out, unicode.IsControl) {
			t.Errorf("Token(%q) = %q", s, out)
		}
	})
}
