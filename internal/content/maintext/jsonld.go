package maintext

import (
	"encoding/json"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// maxNesting is the maximum nesting of JSON-LD that is searched.
const maxNesting = 8

// readData reads headline, date, authors and text from a JSON-LD script. The library does not accept author names
// without a space; readData does.
func (h *head) readData(script *html.Node) {
	if script.FirstChild == nil {
		return
	}
	var v any
	if json.Unmarshal([]byte(script.FirstChild.Data), &v) == nil {
		h.readValue(v, maxNesting)
	}
}

func (h *head) readValue(v any, depth int) {
	if depth == 0 {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			h.readValue(e, depth-1)
		}
	case map[string]any:
		if isArticle(v["@type"]) {
			h.dataTitle, _ = v["headline"].(string)
			h.dataText, _ = v["articleBody"].(string)
			h.dataPublished, _ = v["datePublished"].(string)
			h.readAuthors(v["author"], depth-1)
			return
		}
		h.readValue(v["@graph"], depth-1)
		h.readValue(v["mainEntity"], depth-1)
	}
}

// isArticle reports whether a schema.org type, or one of a list of types, is an article.
func isArticle(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.HasSuffix(v, "Article") || strings.HasSuffix(v, "Posting") || v == "Report"
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok && isArticle(s) {
				return true
			}
		}
	}
	return false
}

func (h *head) readAuthors(v any, depth int) {
	if depth == 0 {
		return
	}
	switch v := v.(type) {
	case string:
		h.addAuthor(v)
	case []any:
		for _, e := range v {
			h.readAuthors(e, depth-1)
		}
	case map[string]any:
		h.readAuthors(v["name"], depth-1)
	}
}

// articleText returns the text of an articleBody, which is usually plain text with one line per paragraph, but
// sometimes HTML.
func articleText(body string) string {
	small, _ := thin([]byte(strings.ReplaceAll(body, "\n", lineMark)), false)
	doc, err := html.Parse(small)
	if err != nil {
		return ""
	}
	return strings.Join(slices.Collect(linesOf(textOfBlocks(doc))), "\n")
}
