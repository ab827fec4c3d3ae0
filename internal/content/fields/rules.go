// Package fields extracts records from pages by rules that are read from a file.
//
// A rule selects pages by URL. For each field of the record, it gives the source in the page and the type:
//
//	# rules.yaml
//	- name: product                          # of the rule, in the records
//	  url: ^https://shop\.example/p/         # regular expression (RE2), or a list of them; matched with the page's URL
//	  each: .product                         # one record for each element; without it, one for the page
//	  fields:
//	    title: h1                            # CSS selector: the text of the first element that matches
//	    image: img.main@src                  # its attribute
//	    price: {css: .price, type: number, required: true}
//	    sku: {xpath: //td[@id='sku'], regex: 'SKU (\d+)'}
//	    rating: {jsonld: Product.aggregateRating.ratingValue, type: number}
//	    about: {meta: og:description}
//	    brand: {microdata: Product.brand.name}
//	    tags: {css: .tag, list: true}
//	    day: {any: [{meta: article:published_time}, {css: time, attr: datetime}], type: date, default: 1970-01-01}
//	    reviews: {css: .review, list: true, fields: {author: .by, stars: {css: .stars, attr: data-n, type: number}}}
//
// A source is css, xpath, jsonld, meta or microdata. It yields a text, which regex reduces to its first group. Then
// type converts the text:
//
//   - text: no conversion
//   - number: see [value.Number]; decimal names the decimal sign
//   - date: see [value.Date]; format describes how dates are written
//   - url: resolved against the page's base URL
//   - bool: see [value.Bool]
//   - json: the JSON-LD value, unchanged
//
// A record omits fields that were not found. A record without a required field is dropped.
//
// The package bounds its work for any page. A tree has at most [tree.MaxNodes] nodes and a budget of steps. A field has
// up to 1,000 values of up to 64 KiB, and all records of a page have up to 4 MiB. Regular expressions take time linear
// in the text. Data beyond a limit is dropped, and [Result.Cut] reports that.
package fields

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kumo/internal/base/page"
	"kumo/internal/content/fields/tree"
	"kumo/internal/content/fields/value"
)

// Limits of a page's records, and of rules.
const (
	maxValues  = 1000    // values of a field, and records of a rule
	maxRecords = 4 << 20 // bytes of all records of a page
	maxFile    = 1 << 20 // bytes of a file of rules
	maxRules   = 1000
	maxFields  = 200 // of a rule or an object
	maxNested  = 4   // nesting depth of objects
)

// Rules are the rules of a file.
type Rules struct{ rules []*rule }

type rule struct {
	name   string
	urls   []*regexp.Regexp
	each   *source // nil: one record for the page
	fields []*field
	all    []*field // fields and nested fields, by number
	info   page.FieldRule
}

// A field is the sources and the type of a value.
type field struct {
	name         string
	path         string // with the names of the enclosing fields: reviews.author
	number       int    // index in rule.all
	sources      []source
	kind         kind
	list         bool
	required     bool
	defaultValue []byte // value if nothing is found, as JSON; nil: none
	decimal      string
	layout       *value.Layout // nil: any known layout
	fields       []*field      // of an object
}

type kind uint8

const (
	text kind = iota
	number
	date
	url
	boolean
	asJSON
	object
)

var kinds = map[string]kind{"text": text, "number": number, "date": date, "url": url, "bool": boolean, "json": asJSON}

// A source is where values come from.
type source struct {
	key, expr string // as written: css, ".price"
	css       *tree.Selector
	xpath     *xpaths
	path      path   // of JSON-LD and microdata
	meta      string // in lower case
	attr      string
	own, html bool
	regex     *regexp.Regexp
}

// A path is the type of an object and the names that lead from it: Product.offers.price. The type may be several,
// separated by |, or * for any.
type path struct {
	types []string
	names []string
}

func parsePath(text string) (p path, err error) {
	parts := strings.Split(text, ".")
	for _, part := range parts {
		if part == "" || strings.ContainsAny(part, " \t") {
			return p, fmt.Errorf("%q: want a type and names separated by points, as in Product.offers.price, "+
				"or *.name for any type", text)
		}
	}
	return path{strings.Split(parts[0], "|"), parts[1:]}, nil
}

func (p *path) isOf(typ string) bool {
	if i := strings.LastIndexAny(typ, "/#:"); i >= 0 {
		typ = typ[i+1:]
	}
	return slices.Contains(p.types, typ) || slices.Contains(p.types, "*")
}

func (s *source) String() string {
	at := ""
	if s.attr != "" && (s.css == nil || s.css.Take.Attr == "") {
		at = "@" + s.attr
	}
	return cmp.Or(s.key, "css") + " " + s.expr + at
}

// Matches reports whether any rule matches the URL.
func (rs *Rules) Matches(pageURL string) bool {
	return slices.ContainsFunc(rs.rules, func(r *rule) bool { return r.matches(pageURL) })
}

func (r *rule) matches(pageURL string) bool {
	return len(r.urls) == 0 || slices.ContainsFunc(r.urls, func(re *regexp.Regexp) bool { return re.MatchString(pageURL) })
}

// For returns the rules that match a URL.
func (rs *Rules) For(pageURL string) (all []page.FieldRule) {
	for _, r := range rs.rules {
		if r.matches(pageURL) {
			all = append(all, r.info)
		}
	}
	return all
}

// Names returns the names of the rules, in the order of the file.
func (rs *Rules) Names() (all []string) {
	for _, r := range rs.rules {
		all = append(all, r.name)
	}
	return all
}
