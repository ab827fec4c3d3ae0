package maintext

import (
	"strings"

	"golang.org/x/net/html"

	"kumo/internal/content/fields/jsonld"
)

// maxNesting is the maximum nesting of JSON-LD that is searched.
const maxNesting = 8

// readData reads headline, date, authors and text from a JSON-LD script.
func (h *head) readData(script *html.Node) {
	values, _ := jsonld.Read(script.FirstChild.Data) // those before an error are valid
	for _, v := range values {
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
		is := typeOf(v["@type"])
		h.types |= is
		if is&(articleType|threadType) != 0 {
			h.dataTitle, _ = v["headline"].(string)
			h.dataText, _ = v["articleBody"].(string)
			h.dataPublished, _ = v["datePublished"].(string)
			h.readAuthors(v["author"], depth-1)
			return
		}
		if date, ok := v["datePublished"].(string); ok && h.pagePublished == "" {
			h.pagePublished = date
		}
		h.readValue(v["@graph"], depth-1)
		h.readValue(v["mainEntity"], depth-1)
	}
}

// typeOf returns what a schema.org type, or a list of types, says of the page.
func typeOf(v any) (is pageType) {
	switch v := v.(type) {
	case string:
		switch v {
		case "DiscussionForumPosting", "QAPage":
			return threadType
		case "ItemList", "CollectionPage", "SearchResultsPage":
			return listType
		case "Product", "ProductGroup", "IndividualProduct", "ProductModel":
			return productType
		case "Service", "LocalBusiness", "ProfessionalService", "GovernmentService":
			return serviceType
		case "Recipe", "Event", "JobPosting", "VideoObject", "ProfilePage", "ContactPage", "AboutPage", "Book", "Movie":
			return otherType
		case "Report":
			return articleType
		}
		if strings.HasSuffix(v, "Article") || strings.HasSuffix(v, "Posting") && v != "JobPosting" {
			return articleType
		}
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok {
				is |= typeOf(s)
			}
		}
	}
	return is
}

func (h *head) readAuthors(v any, depth int) {
	if depth == 0 {
		return
	}
	switch v := v.(type) {
	case string:
		h.dataAuthors = addAuthor(h.dataAuthors, v)
	case []any:
		for _, e := range v {
			h.readAuthors(e, depth-1)
		}
	case map[string]any:
		h.readAuthors(v["name"], depth-1)
	}
}

// textOfData returns the text of an articleBody, which is usually plain text with one line per paragraph, but sometimes
// HTML.
func textOfData(body string) string {
	if body == "" {
		return ""
	}
	d := documents.Get().(*document)
	d.parse(strings.ReplaceAll(body, "\n", "<br>"))
	d.scan()
	text := d.write([]int{0}, true, true, nil)
	d.release()
	return text
}
