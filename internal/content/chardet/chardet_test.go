package chardet

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/cputime"

	"golang.org/x/text/encoding/htmlindex"
)

func testdata(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("KUMO_TEST_DATA")
	if dir == "" {
		t.Skip("KUMO_TEST_DATA does not name the folder of conformance data")
	}
	return dir
}

// canonical returns the WHATWG name of a charset, or the name itself if there is none.
func canonical(name string) string {
	switch name = strings.ToLower(name); name {
	case "iso-2022-kr", "utf-16", "utf-32":
		return name
	case "mac-cyrillic":
		return "x-mac-cyrillic"
	}
	enc, err := htmlindex.Get(name)
	if err != nil {
		return name
	}
	name, _ = htmlindex.Name(enc)
	return name
}

// The set's texts are short, and some of their charsets are not used on the Web.
func TestUchardet(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata(t), "charset", "uchardet", "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	right := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Base(file)
		want := canonical(strings.TrimSuffix(base, filepath.Ext(base)))
		if want == "utf-16" || want == "utf-32" {
			want += strings.TrimPrefix(filepath.Ext(base), ".")
		}
		got := Detect(data)
		switch {
		case got.Name == want, want == "windows-1252" && got.Name == "" && filepath.Base(filepath.Dir(file)) == "en":
			right++
		default:
			t.Logf("%s: got %v, want %s", file, got, want)
		}
	}
	t.Logf("%d of %d", right, len(files))
	if right*100 < 95*len(files) {
		t.Errorf("%d of %d", right, len(files))
	}
}

// Each sample is detected correctly in each charset that has all its letters.
func TestSamples(t *testing.T) {
	for _, s := range singleBytes() {
		enc, err := htmlindex.Get(s.name)
		if err != nil {
			continue // not used on the Web
		}
		for _, sample := range samples() {
			text := sample.text
			if s.name == "windows-1258" {
				text = splitTones(text)
			}
			body, err := enc.NewEncoder().Bytes([]byte(text))
			if !slices.Contains(s.groups, sample.group) || err != nil {
				continue
			}
			if got := Detect(body); readAs(body, got.Name) != text || got.Confidence < 0.5 {
				t.Errorf("%s in %s: got %v", sample.lang, s.name, got)
			}
		}
	}
}

func TestDetect(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"ASCII", "plain text ~{ \x1B[0m", ""},
		{"a stray zero", "plain text\x00, more of it", ""},
		{"UTF-8", "d\xC3\xA9j\xC3\xA0", "utf-8"},
		{"UTF-8, cut off", "d\xC3\xA9j\xC3", "utf-8"},
		{"ISO-2022-JP", "\x1B$B4A;z\x1B(B", "iso-2022-jp"},
		{"ISO-2022-KR", "\x1B$)C\x0EGQ1[\x0F", "iso-2022-kr"},
		{"UTF-16 little", "p\x00l\x00a\x00i\x00n\x00 \x00", "utf-16le"},
		{"UTF-16 big", "\x00p\x00l\x00a\x00i\x00n\x00 ", "utf-16be"},
		{"UTF-16 of ideographs", strings.Repeat("\x4E\x2D\x65\x87\x7F\x51\x98\x75\x00\x0A", 10), "utf-16be"},
		{"UTF-32 little", "p\x00\x00\x00l\x00\x00\x00", "utf-32le"},
		{"UTF-32 big", "\x00\x00\x00p\x00\x00\x00l", "utf-32be"},
		{"quotes of Windows", "it\x92s \x93quoted\x94 \x96 so", "windows-1252"},
		{"the euro of ISO 8859-15", "co\xFBte 5 \xA4 (l'\xBDuf)", "iso-8859-15"},
		{"a word of Russian", "\xCF\xF0\xE8\xE2\xE5\xF2 \xEC\xE8\xF0", "windows-1251"},
		{"the same in KOI8-R", "\xF0\xD2\xC9\xD7\xC5\xD4 \xCD\xC9\xD2", "koi8-r"},
		{"French in markup", "<p class=\"x\">caf\xE9</p><b>d\xE9j\xE0 \xE9t\xE9</b>", "windows-1252"},
	} {
		if got := Detect([]byte(c.text)); got.Name != c.want || got.Confidence < 0 || got.Confidence > 1 ||
			(got.Name == "") != (got.Confidence == 0) {
			t.Errorf("%s: got %v, want %s", c.name, got, c.want)
		}
	}
}

// A few invalid bytes do not make UTF-8 another charset.
func TestFlawedUTF8(t *testing.T) {
	for _, text := range []string{"Übermäßig viele schöne Wörter. ", "Сегодня хорошая погода. ",
		"L’été dernier, nous avons mangé. ", "It’s a fine day, isn’t it? “Yes,” she said. ", "今天的天气很好。",
		"今日は天気がいいので。", "Σήμερα ο καιρός είναι καλός. ", "Zażółć gęślą jaźń. "} {
		for _, bad := range []string{"\xff", "caf\xe9 ", "\xc3(", "\xed\xa0\xbd\xed\xb8\x80", "\xf5\x80\x80\x80", "\xa9 2024"} {
			flawed := strings.Repeat(text, 5) + bad + strings.Repeat(text, 3)
			if got := Detect([]byte(flawed)); got.Name != "utf-8" || got.Confidence < 0.9 {
				t.Errorf("%q: got %v", flawed, got)
			}
		}
	}
	for _, text := range []string{"caf\xE9 co\xFBte d\xC3\xA9j\xE0", "\xC3\xA9\xC3\xA9 \xE9t\xE9"} {
		if got := Detect([]byte(text)); got.Name == "utf-8" {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

// Confidence grows with the text, and is low for short texts.
func TestConfidence(t *testing.T) {
	few, many := Detect([]byte("caf\xE9")), Detect([]byte(strings.Repeat("\xEF\xF0\xE8\xE2\xE5\xF2 ", 20)))
	if few.Confidence > 0.3 || many.Confidence < 0.95 {
		t.Errorf("got %v and %v", few, many)
	}
}

func FuzzDetect(f *testing.F) {
	for _, seed := range []string{"caf\xE9", "\x93\xFA\x96{", "\x81\x30\x81\x30", "\x8E\xA2\xA1\xA1", "\x8F\xA1\xA1",
		"a\x00b\x00", "\x1B$B", "\xFE", "\xA4"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got := Detect(text); got.Confidence < 0 || got.Confidence > 1 || got.Name == "" && len(gistOf(text)) > 0 {
			t.Errorf("got %v", got)
		}
	})
}

// A large text takes no longer than its beginning.
func TestLarge(t *testing.T) {
	for _, unit := range []string{"\xFF", "\x81", "a\xE9 ", "\xE9" + strings.Repeat(" ", 999), "\x00", "\x1B$",
		"\x8E\xA1\xA1"} {
		text := []byte(strings.Repeat(unit, 4<<20/len(unit)))
		if took := cputime.Of(func() { Detect(text) }); took > 3*time.Second {
			t.Errorf("%q took %v", unit, took)
		}
	}
}

func BenchmarkDetect(b *testing.B) {
	for name, text := range map[string]string{
		"latin": strings.Repeat("Le march\xE9 ouvre d\xE8s six heures du matin, m\xEAme quand il g\xE8le. ", 400),
		"sjis":  strings.Repeat("\x93\xFA\x96{\x8C\xEA\x82\xCC\x95\xB6\x8F\xCD\x82\xC5\x82\xB7\x81B", 1500),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if got := Detect([]byte(text)); got.Confidence < 0.9 {
					b.Fatal(got)
				}
			}
		})
	}
}

// charsets has the legacy charsets of the languages of the sentences.
var charsets = map[string][]string{
	"ar": {"windows-1256", "iso-8859-6"}, "fa": {"windows-1256"}, "ur": {"windows-1256"},
	"be": {"windows-1251"}, "bg": {"windows-1251", "koi8-r", "iso-8859-5"}, "mk": {"windows-1251"},
	"ru": {"windows-1251", "koi8-r",
		"iso-8859-5", "ibm866", "x-mac-cyrillic"}, "sr": {"windows-1251"}, "uk": {"windows-1251", "koi8-u"},
	"ca": {"windows-1252"}, "da": {"windows-1252"}, "de": {"windows-1252"}, "es": {"windows-1252"}, "fi": {"windows-1252"},
	"fr": {"windows-1252"}, "is": {"windows-1252"}, "it": {"windows-1252"}, "nb": {"windows-1252"}, "nl": {"windows-1252"},
	"pt": {"windows-1252"}, "sv": {"windows-1252"},
	"cs": {"windows-1250", "iso-8859-2"}, "hr": {"windows-1250", "iso-8859-2"}, "hu": {"windows-1250", "iso-8859-2"},
	"pl": {"windows-1250", "iso-8859-2"}, "sk": {"windows-1250", "iso-8859-2"}, "sl": {"windows-1250", "iso-8859-2"},
	"ro": {"iso-8859-2"}, "lt": {"windows-1257"}, "lv": {"windows-1257"}, "et": {"windows-1257"},
	"el": {"windows-1253", "iso-8859-7"}, "he": {"windows-1255"}, "th": {"windows-874"}, "tr": {"windows-1254"},
	"ja": {"shift_jis", "euc-jp", "iso-2022-jp"}, "ko": {"euc-kr"}, "zh": {"gb18030", "big5"},
}

// sentences returns the sentences of each language in the set.
func sentences(t *testing.T) map[string][]string {
	t.Helper()
	file, err := os.Open(filepath.Join(testdata(t), "lang", "sentences.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all := make(map[string][]string)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var line struct{ Lang, Text string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		all[line.Lang] = append(all[line.Lang], line.Text)
	}
	return all
}

// A text of several sentences is decoded correctly, even if the name of the charset differs.
func TestSentences(t *testing.T) {
	const together = 5
	right, all := 0, 0
	for lang, texts := range sentences(t) {
		for _, name := range charsets[lang] {
			enc, err := htmlindex.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			good, n := 0, 0
			wrong := make(map[string]int)
			for i := 0; i+together <= len(texts); i += together {
				var text string
				for _, sentence := range texts[i : i+together] {
					if _, err := enc.NewEncoder().String(sentence); err == nil {
						text += sentence + "\n"
					}
				}
				body, err := enc.NewEncoder().Bytes([]byte(text))
				if err != nil || countHigh(body) < 8 && name != "iso-2022-jp" {
					continue
				}
				n++
				got := Detect(body)
				if readAs(body, got.Name) == text {
					good++
				} else {
					wrong[got.Name]++
				}
			}
			right, all = right+good, all+n
			if good < n {
				t.Logf("%s in %s: %d of %d; %v", lang, name, good, n, wrong)
			}
		}
	}
	t.Logf("%d of %d", right, all)
	if right*100 < 99*all {
		t.Errorf("%d of %d", right, all)
	}
}

func readAs(body []byte, name string) string {
	enc, err := htmlindex.Get(name)
	if err != nil {
		return ""
	}
	text, err := enc.NewDecoder().Bytes(body)
	if err != nil {
		return ""
	}
	return string(text)
}

// TestDeclaredLanguage tests that the declared language decides between charsets for texts of a few words.
func TestDeclaredLanguage(t *testing.T) {
	central, baltic := []string{"windows-1250", "iso-8859-2"}, []string{"windows-1257", "iso-8859-13"}
	of := map[string][]string{"cs": central, "pl": central, "hu": central, "sk": central, "sl": central, "hr": central,
		"lt": baltic, "lv": baltic, "et": baltic}
	all, without, with := 0, 0, 0
	for lang, texts := range sentences(t) {
		for _, text := range texts {
			runes := []rune(text)
			text = string(runes[:min(len(runes), 40)])
			for _, name := range of[lang] {
				enc, err := htmlindex.Get(name)
				if err != nil {
					t.Fatal(err)
				}
				coded, err := enc.NewEncoder().String(text)
				if err != nil || coded == text { // it has other characters, or none that matter
					continue
				}
				all++
				if readAs([]byte(coded), Detect([]byte(coded)).Name) == text {
					without++
				}
				if readAs([]byte(coded), DetectIn([]byte(coded), lang).Name) == text {
					with++
				}
			}
		}
	}
	t.Logf("%d texts of 40 characters: %d without language, %d with it", all, without, with)
	if all < 1000 || 100*with < 88*all {
		t.Errorf("%d of %d are read correctly", with, all)
	}
}
