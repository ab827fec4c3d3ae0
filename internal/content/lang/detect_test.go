package lang

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/text/unicode/norm"
)

func TestDetect(t *testing.T) {
	for _, tt := range []struct{ name, text, lang, script string }{
		{"empty", "", Other, "Zyyy"},
		{"no letters", "12:45 — 3.14 €, ☂☂☂", Other, "Zyyy"},
		{"not UTF-8", "\xff\xfe\x80\x80", Other, "Zyyy"},
		{"broken letters between", "Der Zug \xff\xfe fährt heute \x80 leider erst um halb neun vom anderen Bahnsteig ab.",
			"de", "Latn"},
		{"capitals", "THE HARBOUR WAS FULL OF SMALL BOATS, AND NOBODY KNEW WHO THEY BELONGED TO.", "en", "Latn"},
		{"simplified", "这个城市的图书馆每天晚上九点关门，周末休息。", "zh", "Hans"},
		{"traditional", "這個城市的圖書館每天晚上九點關門，週末休息。", "zh", "Hant"},
		{"kana", "図書館は毎晩九時に閉まります。", "ja", "Jpan"},
		{"kanji alone", "東京都知事選挙 投票率発表 前回比増加", "ja", "Jpan"},
		{"Korean with Latin names", "삼성전자는 오늘 Galaxy S24 Ultra 를 공개했다고 밝혔다", "ko", "Kore"},
		{"Chinese with Latin names", "苹果公司今天发布了 iPhone 和 MacBook Pro 的新型号，价格没有变化", "zh", "Hans"},
		{"Lao", "ສະບາຍດີ ຂ້ອຍຊື່ວ່າ", "lo", "Laoo"},
		{"Thai", "ห้องสมุดปิดเวลาสามทุ่ม", Other, "Thai"},
		{"Greek", "Η βιβλιοθήκη κλείνει στις εννέα.", Other, "Grek"},
		{"Dutch", "De bibliotheek sluit elke avond om negen uur, behalve op zondag.", Other, "Latn"},
		{"Swedish", "Biblioteket stänger klockan nio varje kväll, utom på söndagar.", Other, "Latn"},
		{"Catalan", "La biblioteca tanca cada vespre a les nou, però no pas els diumenges.", Other, "Latn"},
		{"Swahili", "Maktaba hufungwa kila siku saa tatu usiku isipokuwa siku ya Jumapili.", Other, "Latn"},
		{"Ukrainian", "Бібліотека зачиняється щовечора о дев'ятій, крім неділі.", Other, "Cyrl"},
		{"Bulgarian", "Библиотеката затваря всяка вечер в девет часа, освен в неделя.", Other, "Cyrl"},
		{"Marathi", "ग्रंथालय दररोज रात्री नऊ वाजता बंद होते आणि रविवारी सुट्टी असते.", Other, "Deva"},
		{"Kurdish", "کتێبخانەکە هەموو ئێوارەیەک کاتژمێر نۆ دادەخرێت.", Other, "Arab"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Detect(tt.text)
			if got.Lang != tt.lang || got.Script != tt.script {
				t.Errorf("Detect(%q) = %+v, want %s in %s", tt.text, got, tt.lang, tt.script)
			}
			if got != Detect([]byte(tt.text)) {
				t.Error("bytes and string differ")
			}
		})
	}
}

// The Unicode normalization form must not matter: pages use either.
func TestDetectNormalises(t *testing.T) {
	for _, text := range []string{
		"Thư viện đóng cửa lúc chín giờ tối mỗi ngày, trừ chủ nhật.",
		"La bibliothèque ferme à neuf heures, sauf les jours fériés où elle est fermée.",
		"पुस्तकालय रोज़ रात नौ बजे बंद होता है और बड़े दरवाज़े पर ताला लगता है।",
	} {
		if c, d := Detect(norm.NFC.String(text)), Detect(norm.NFD.String(text)); c != d {
			t.Errorf("%q: composed %+v, decomposed %+v", text, c, d)
		}
	}
}

func TestDetectLooksAtThePrefix(t *testing.T) {
	german := strings.Repeat("Der Zug fährt heute leider erst um halb neun ab. ", 100)
	if got := Detect(german + strings.Repeat("这个城市的图书馆每天晚上九点关门。", 10_000)); got.Lang != "de" {
		t.Errorf("a long text that begins in German is %+v", got)
	}
}

func TestDetectConcurrently(t *testing.T) {
	want := map[string]Result{}
	for _, s := range declaration(t) {
		want[s.Text] = Detect(s.Text)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for text, r := range want {
				if got := Detect(text); got != r {
					t.Errorf("Detect(%q) = %+v, alone %+v", text, got, r)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzDetect(f *testing.F) {
	f.Add([]byte("Der Zug fährt"))
	f.Add([]byte("\xff\xe0\xb0 कखग \u200d\u0301\u0301 漢字"))
	f.Add([]byte(strings.Repeat("e\u0301\u0327", 3000)))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := Detect(text)
		if r.Lang == "" || len(r.Script) != 4 || !(r.Confidence >= 0 && r.Confidence <= 1) {
			t.Fatalf("Detect(%q) = %+v", text, r)
		}
		if again := Detect(text); again != r {
			t.Fatalf("%+v, then %+v", r, again)
		}
	})
}

func TestDetectDoesNotAllocate(t *testing.T) {
	for name, text := range twoKilobytes(t) {
		s := new(scratch) // not from the pool, which the race detector empties at times
		if n := testing.AllocsPerRun(100, func() { s.text = append(s.text[:0], text...); s.detect() }); n >= 1 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// twoKilobytes returns texts in several languages, one per script and more in Latin, as long as what a crawl reads.
func twoKilobytes(t testing.TB) map[string][]byte {
	t.Helper()
	texts := map[string]string{}
	for _, s := range declaration(t) {
		texts[s.Lang] += s.Text + " "
	}
	out := map[string][]byte{"vi decomposed": norm.NFD.Bytes([]byte(texts["vi"]))}
	for _, lang := range []string{"en", "id", "vi", "ru", "fa", "hi", "zh", "my", "bo"} {
		out[lang] = norm.NFC.Bytes([]byte(texts[lang]))
	}
	for name, text := range out {
		out[name] = bytes.Repeat(text, 1+2000/len(text))[:2000]
	}
	return out
}

func BenchmarkDetect(b *testing.B) {
	texts := twoKilobytes(b)
	Detect(texts["en"]) // unpacks the model
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(texts[name])))
			b.ReportAllocs()
			for b.Loop() {
				Detect(texts[name])
			}
		})
	}
}
