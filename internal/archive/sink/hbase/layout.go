package hbase

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kumo/internal/archive/sink"
)

// A layout determines the row keys and the columns of a table.
type layout struct {
	key              func(url string) string
	page, text, meta string // column families
	fields           string // column family with a column for each field; "": none
	withRule         bool   // the columns of fields have the rule's name, too: f:product.price
}

// keys are the row keys by the name of the parameter key.
var keys = map[string]func(url string) string{
	"host": Key,
	"url":  func(url string) string { return url },
	"hash": func(url string) string { return hash(url, 16) },
	// spreads the rows evenly over regions, and keeps the pages of a host together in each
	"salt": func(url string) string { return hash(url, 1) + ":" + Key(url) },
}

// hash returns the first n bytes of a URL's SHA-256, in hexadecimal form.
func hash(url string, n int) string {
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:n])
}

var familyPattern = regexp.MustCompile(`^[\pL\pN_-][\pL\pN_.-]*$`)

// parseLayout parses the parameters of a sink's URL.
func parseLayout(query url.Values) (layout, error) {
	l := layout{key: Key, page: "page", text: "text", meta: "meta", fields: "f"}
	family := map[string]*string{"page": &l.page, "text": &l.text, "meta": &l.meta, "fields": &l.fields}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		value, to := query.Get(name), family[name]
		switch {
		case to != nil && (familyPattern.MatchString(value) || name == "fields" && value == ""):
			*to = value
		case to != nil:
			return l, fmt.Errorf("%s=%s: want the name of a column family", name, value)
		case name == "key" && keys[value] != nil:
			l.key = keys[value]
		case name == "key":
			return l, fmt.Errorf("key=%s: want one of %s", value, strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
		case name == "column" && (value == "field" || value == "rule.field"):
			l.withRule = value == "rule.field"
		case name == "column":
			return l, fmt.Errorf("column=%s: want field or rule.field", value)
		default:
			return l, fmt.Errorf("there is no parameter %q: want key, page, text, meta, fields or column", name)
		}
	}
	if slices.Contains([]string{l.page, l.text, l.meta}, l.fields) {
		return l, errors.New("extracted fields need a column family of their own, because a field may have any name")
	}
	return l, nil
}

// families returns the names of the column families.
func (l *layout) families() (all []string) {
	for _, name := range []string{l.page, l.text, l.meta, l.fields} {
		if name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// appendRow appends a row of a CellSet. It has all cells, even empty ones, so that no cell of an older record remains.
func (l *layout) appendRow(b []byte, r *sink.Record) []byte {
	var fields, usage []byte
	if len(r.Fields) > 0 {
		fields, _ = json.Marshal(r.Fields) // cannot fail: the values were parsed from JSON
	}
	if r.Usage != nil {
		usage = r.Usage.JSON()
	}
	depth := ""
	if r.Depth >= 0 {
		depth = strconv.Itoa(r.Depth)
	}
	at := uint64(max(0, r.Time.UnixMilli()))
	row := appendBytes(nil, rowKey, l.key(r.URL))
	cell := func(family, column, value string) {
		c := appendBytes(nil, cellColumn, family+":"+column)
		c = appendVarint(c, cellTime, at)
		row = appendBytes(row, rowCells, appendBytes(c, cellData, value))
	}
	for _, c := range [...]struct{ family, column, value string }{
		{l.page, "url", r.URL}, {l.page, "status", strconv.Itoa(r.Status)}, {l.page, "time", r.Time.Format(time.RFC3339)},
		{l.page, "type", r.Type}, {l.page, "charset", r.Charset}, {l.page, "bytes", strconv.FormatInt(r.Bytes, 10)},
		{l.page, "digest", r.Digest}, {l.page, "links", strconv.Itoa(r.Links)}, {l.page, "truncated", r.Truncated},
		{l.page, "host", r.Host}, {l.page, "depth", depth}, {l.page, "noindex", strconv.FormatBool(r.NoIndex)},
		{l.page, "canonical", r.Canonical}, {l.page, "server_ip", r.ServerIP},
		{l.page, "usage", string(usage)},
		{l.text, "lang", r.Lang}, {l.text, "title", r.Title}, {l.text, "h1", r.H1}, {l.text, "description", r.Description},
		{l.text, "headline", r.Headline}, {l.text, "author", r.Author}, {l.text, "published", r.Published},
		{l.text, "kind", r.Kind}, {l.text, "text", r.Text}, {l.text, "comments", r.Comments},
		{l.meta, "fields", string(fields)}, {l.meta, "cut", strconv.FormatBool(r.Cut)},
	} {
		cell(c.family, c.column, c.value)
	}
	if l.fields != "" {
		l.eachField(r, func(column, value string) { cell(l.fields, column, value) })
	}
	return appendBytes(b, setRows, row)
}

// eachField calls f with the columns of the extracted fields. If several rules have a field of the same name, the first
// rule with a value for it counts.
func (l *layout) eachField(r *sink.Record, f func(column, value string)) {
	values := map[string]string{}
	set := func(column, value string) {
		if values[column] == "" {
			values[column] = value
		}
	}
	byRule := map[string][]json.RawMessage{}
	for i := range r.Fields {
		byRule[r.Fields[i].Rule] = append(byRule[r.Fields[i].Rule], r.Fields[i].Values)
	}
	for _, rule := range r.Rules {
		l.setRule(set, rule.Name, byRule[rule.Name], rule.Each)
		for _, name := range rule.Fields {
			if !rule.Each {
				set(l.column(rule.Name, name), "")
			}
		}
		delete(byRule, rule.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(byRule)) { // of a filter, or of rules that are not known
		l.setRule(set, name, byRule[name], len(byRule[name]) > 1)
	}
	for _, column := range slices.Sorted(maps.Keys(values)) {
		f(column, values[column])
	}
}

// setRule sets the columns of a rule's records: a JSON list in one column if there may be several records.
func (l *layout) setRule(set func(column, value string), rule string, records []json.RawMessage, several bool) {
	switch {
	case several && len(records) == 0:
		set(rule, "")
	case several:
		list, _ := json.Marshal(records) // cannot fail: the values were parsed from JSON
		set(rule, string(list))
	case len(records) > 0:
		var all map[string]json.RawMessage
		_ = json.Unmarshal(records[0], &all) // values that are not an object have no columns
		for name, value := range all {
			set(l.column(rule, name), cellText(value))
		}
	}
}

func (l *layout) column(rule, field string) string {
	if l.withRule {
		return rule + "." + field
	}
	return field
}

// cellText returns a JSON value in the form of a cell: a text without quotes, and others as JSON.
func cellText(value json.RawMessage) string {
	value = bytes.TrimSpace(value)
	var text string
	if bytes.HasPrefix(value, []byte(`"`)) && json.Unmarshal(value, &text) == nil {
		return text
	}
	if string(value) == "null" {
		return ""
	}
	return string(value)
}

// Key returns the row key of a URL, with the host's labels reversed.
func Key(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" {
		return rawURL
	}
	host := strings.ToLower(u.Hostname())
	if _, err := netip.ParseAddr(host); err != nil {
		labels := strings.Split(host, ".")
		slices.Reverse(labels)
		host = strings.Join(labels, ".")
	} else if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	key := host + ":" + u.Scheme
	if port := u.Port(); port != "" {
		key += ":" + port
	}
	_, rest, _ := strings.Cut(rawURL, "://")
	if at := strings.IndexAny(rest, "/?"); at >= 0 { // not normalized, so that different URLs have different keys
		return key + rest[at:]
	}
	return key
}
