package fields

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"kumo/internal/content/fields/jsonld"
	"kumo/internal/content/fields/tree"
)

// Structured data of a page: JSON-LD, microdata and meta elements. Each is parsed at most once per page.

const (
	maxData    = 1 << 20 // bytes of JSON-LD that are read
	maxDepth   = 64      // nesting depth of objects
	maxObjects = 10_000
)

// data is a page's JSON-LD.
type data struct {
	// objects with a type, in the order of the page; within an object, in the order of its keys
	objects []map[string]any
	byID    map[string]map[string]any // by @id; objects with nothing but an @id are not in it
	broken  bool                      // some of the JSON is invalid
	tree    *tree.Tree                // its budget of steps is charged
}

func (r *run) data() *data {
	if r.jsonLD != nil {
		return r.jsonLD
	}
	r.jsonLD = &data{byID: map[string]map[string]any{}, tree: r.tree}
	left := maxData
	r.tree.Spend(r.tree.Nodes())
	for i := range r.tree.Nodes() {
		n := r.tree.Node(i)
		if n.DataAtom != atom.Script || n.FirstChild == nil {
			continue
		}
		typ, _ := r.tree.Attr(i, "type")
		typ, _, _ = strings.Cut(typ, ";")
		if !strings.EqualFold(strings.TrimSpace(typ), "application/ld+json") {
			continue
		}
		if left -= len(n.FirstChild.Data); left < 0 {
			r.cut = true
			break
		}
		values, err := jsonld.Read(n.FirstChild.Data)
		r.jsonLD.broken = r.jsonLD.broken || err != nil
		for _, v := range values {
			r.jsonLD.collect(v, 0)
		}
	}
	return r.jsonLD
}

func (d *data) collect(v any, depth int) {
	if depth > maxDepth || len(d.objects) >= maxObjects {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			d.collect(e, depth+1)
		}
	case map[string]any:
		if v["@type"] != nil {
			d.objects = append(d.objects, v)
		}
		if id, is := v["@id"].(string); is && len(v) > 1 && d.byID[id] == nil {
			d.byID[id] = v
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if !strings.HasPrefix(key, "@") || key == "@graph" {
				d.collect(v[key], depth+1)
			}
		}
	}
}

// follow returns the values at the end of a path, up to most, or the reason why there are none.
func (d *data) follow(p *path, most int, explain bool) (found []any, why string) {
	met := false
	for _, o := range d.objects {
		if !slices.ContainsFunc(textsOf(o["@type"]), p.isOf) {
			continue
		}
		met = true
		if found = d.walk(found, o, p.names, most, 0); len(found) > 0 && most == 1 {
			return found[:1], ""
		}
	}
	if len(found) > 0 || !explain {
		return found[:min(len(found), most)], ""
	}
	switch {
	case met:
		return nil, fmt.Sprintf("the page's JSON-LD has %s, but no %s in it", p.types[0], strings.Join(p.names, "."))
	case len(d.objects) > 0:
		return nil, fmt.Sprintf("the page's JSON-LD has no %s, only %s", p.types[0], d.types())
	case d.broken:
		return nil, "the page's JSON-LD is not valid JSON"
	}
	return nil, "the page has no JSON-LD"
}

func (d *data) types() string {
	var all []string
	for _, o := range d.objects {
		for _, t := range textsOf(o["@type"]) {
			if !slices.Contains(all, t) && len(all) < 10 {
				all = append(all, t)
			}
		}
	}
	return strings.Join(all, ", ")
}

// textsOf returns the strings in a value: a string or a list of strings.
func textsOf(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			if s, is := e.(string); is {
				all = append(all, s)
			}
		}
	}
	return all
}

func (d *data) walk(found []any, v any, names []string, most, depth int) []any {
	if depth > maxDepth || len(found) >= most || !d.tree.Spend(1) {
		return found
	}
	if list, is := v.([]any); is {
		for _, e := range list {
			found = d.walk(found, e, names, most, depth+1)
		}
		return found
	}
	if len(names) == 0 {
		if v != nil {
			found = append(found, v)
		}
		return found
	}
	o, is := v.(map[string]any)
	if !is {
		return found
	}
	if o[names[0]] == nil { // only a reference to an object elsewhere
		if id, is := o["@id"].(string); is && d.byID[id] != nil {
			o = d.byID[id]
		}
	}
	return d.walk(found, o[names[0]], names[1:], most, depth+1)
}

// textOf converts a value of JSON-LD to text: for an object, its value, URL or name.
func textOf(v any, k kind) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return map[bool]string{true: "true", false: "false"}[v], true
	case map[string]any:
		keys := []string{"@value", "name", "@id", "url"}
		if k == url {
			keys = []string{"@value", "url", "contentUrl", "@id"}
		}
		for _, key := range keys {
			if v[key] != nil {
				if _, nested := v[key].(map[string]any); !nested {
					return textOf(v[key], k)
				}
			}
		}
	}
	return "", false
}

// metas returns the contents of the meta elements with a property or name.
func (r *run) metas(name string, most int) (found []string) {
	if r.meta == nil {
		r.meta = []int{}
		r.tree.Spend(r.tree.Nodes())
		for i := range r.tree.Nodes() {
			if r.tree.Node(i).DataAtom == atom.Meta {
				r.meta = append(r.meta, i)
			}
		}
	}
	for _, i := range r.meta {
		if len(found) == most {
			break
		}
		for _, a := range r.tree.Node(i).Attr {
			if (a.Key == "property" || a.Key == "name" || a.Key == "itemprop") && strings.EqualFold(a.Val, name) {
				if content, has := r.tree.Attr(i, "content"); has {
					found = append(found, content)
				}
				break
			}
		}
	}
	return found
}

// microdata returns the values of a property of items, up to most.
func (r *run) microdata(p *path, most int) (found []string, why string) {
	if r.items == nil {
		r.items = []int{}
		r.tree.Spend(r.tree.Nodes())
		for i := range r.tree.Nodes() {
			if _, is := r.tree.Attr(i, "itemtype"); is {
				r.items = append(r.items, i)
			}
		}
	}
	met, types := false, []string(nil)
	for _, i := range r.items {
		typ, _ := r.tree.Attr(i, "itemtype")
		if !slices.ContainsFunc(strings.Fields(typ), p.isOf) {
			types = append(types, typ)
			continue
		}
		met = true
		if found = r.properties(found, i, p.names, most); len(found) >= most {
			return found[:most], ""
		}
	}
	switch {
	case len(found) > 0 || !r.explain:
	case met:
		why = fmt.Sprintf("the page's microdata has %s, but no %s in it", p.types[0], strings.Join(p.names, "."))
	case len(types) > 0:
		slices.Sort(types)
		types = slices.Compact(types)
		types = types[:min(len(types), 10)]
		why = fmt.Sprintf("the page's microdata has no %s, only %s", p.types[0], strings.Join(types, ", "))
	default:
		why = "the page has no microdata"
	}
	return found, why
}

// properties appends the values of an item's property, or of a property of items in it. It also searches the elements
// that itemref names.
func (r *run) properties(found []string, item int, names []string, most int) []string {
	found = r.propertiesIn(found, item+1, r.tree.End(item), names, most)
	refs, _ := r.tree.Attr(item, "itemref")
	for id := range strings.FieldsSeq(refs) {
		if i, is := r.byID()[id]; is && (i > item || r.tree.End(i) <= item) { // not an ancestor of the item
			found = r.propertiesIn(found, i, r.tree.End(i), names, most)
		}
	}
	return found
}

// propertiesIn is properties for the elements from start to end.
func (r *run) propertiesIn(found []string, start, end int, names []string, most int) []string {
	if !r.tree.Spend(end - start) {
		return found
	}
	for i := start; i < end && len(found) < most; i++ {
		if r.tree.Node(i).Type != html.ElementNode {
			continue
		}
		prop, _ := r.tree.Attr(i, "itemprop")
		_, scoped := r.tree.Attr(i, "itemscope")
		if prop != "" && slices.Contains(strings.Fields(prop), names[0]) {
			switch {
			case len(names) == 1:
				found = append(found, r.property(i))
			case scoped:
				found = r.properties(found, i, names[1:], most)
			}
		}
		if scoped { // its content belongs to another item
			i = r.tree.End(i) - 1
		}
	}
	return found
}

// byID returns the elements by id. If an id is repeated, the first element counts.
func (r *run) byID() map[string]int {
	if r.ids == nil {
		r.ids = map[string]int{}
		r.tree.Spend(r.tree.Nodes())
		for i := range r.tree.Nodes() {
			if id, has := r.tree.Attr(i, "id"); has {
				if _, double := r.ids[id]; !double {
					r.ids[id] = i
				}
			}
		}
	}
	return r.ids
}

// property returns the value of an element with itemprop, by the HTML standard.
func (r *run) property(i int) string {
	key := ""
	switch r.tree.Node(i).DataAtom {
	case atom.Meta:
		key = "content"
	case atom.A, atom.Area, atom.Link:
		key = "href"
	case atom.Audio, atom.Embed, atom.Iframe, atom.Img, atom.Source, atom.Track, atom.Video:
		key = "src"
	case atom.Object:
		key = "data"
	case atom.Data, atom.Meter:
		key = "value"
	case atom.Time:
		key = "datetime"
	}
	if v, has := r.tree.Attr(i, "content"); has { // pages also use content on other elements
		return v
	}
	v, has := r.tree.Attr(i, key)
	switch {
	case !has || key == "":
		return r.tree.Text(i)
	case key == "href" || key == "src" || key == "data":
		if u, err := r.resolve(v); err == nil && v != "" {
			return u
		}
	}
	return v
}
