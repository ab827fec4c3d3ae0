package check

import (
	"cmp"
	"math"

	"kumo/internal/content/lang"
	"kumo/internal/content/mime"
	"kumo/internal/content/parse"
)

// LangIn is a UTF-8 text or a page.
type LangIn struct {
	Text string `json:"text" need:"text"`

	Page *PageIn `json:"-"` // used instead of Text if it is not nil
}

// LangOut is the language of the beginning of a text.
type LangOut struct {
	// ISO 639-1, or 639-3 if there is none; "other" if it is none of the known ones
	Lang       string   `json:"lang"`
	Script     string   `json:"script,omitempty"`     // ISO 15924; "" for an HTML page
	Confidence *float64 `json:"confidence,omitempty"` // 0 to 1; nil for an HTML page
}

// Lang detects a text's language. For an HTML page it is the language that a crawl would find, "" if the page has
// hardly any text.
func Lang(in LangIn) (LangOut, error) {
	if in.Page != nil {
		return pageLang(*in.Page)
	}
	return textLang(in.Text), nil
}

func textLang[T ~string | ~[]byte](text T) LangOut {
	r := lang.Detect(text)
	r.Confidence = math.Round(1e4*r.Confidence) / 1e4
	return LangOut{r.Lang, r.Script, &r.Confidence}
}

func pageLang(in PageIn) (LangOut, error) {
	if in.Header == nil { // a file is HTML only if its content is
		in.ContentType = cmp.Or(in.ContentType, mime.Sniff(in.HTML, "", false).Essence())
	}
	pg, err := readPage(in, parse.Config{Language: true})
	if err != nil && pg.Base == "" {
		return LangOut{}, err
	}
	if parse.IsHTML(pg.Sniffed) {
		return LangOut{Lang: pg.Lang}, nil
	}
	c := parse.DetectCharset(in.HTML, cmp.Or(in.ContentType, in.Header.Get("Content-Type")))
	if t := binaryType(in.HTML, c); t != "" {
		return LangOut{}, bodyError(t, "which is not text: its language cannot be detected")
	}
	return textLang(parse.UTF8(in.HTML, c.Name)), nil
}
