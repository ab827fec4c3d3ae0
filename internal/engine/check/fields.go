package check

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"kumo/internal/content/fields"
	"kumo/internal/content/parse"
)

// FieldsIn is a page, and the rules to extract records from it.
type FieldsIn struct {
	PageIn
	Rules string `json:"rules"` // YAML

	File string `json:"-"` // file of the rules, for errors; "" in the line protocol
}

// FieldsOut is what the rules have extracted from a page.
type FieldsOut struct {
	Records []Record     `json:"records"`
	Rules   []RuleResult `json:"rules"`
	Cut     bool         `json:"cut,omitempty"` // only the beginning of the page was read

	anyURL bool
}

// A Record is a record as in fields.jsonl.
type Record struct {
	Rule   string          `json:"rule"`
	Fields json.RawMessage `json:"fields"`
}

// RuleResult is the result of one rule.
type RuleResult struct {
	Rule    string        `json:"rule"`
	Matches bool          `json:"matches"` // the rule applies to the page's URL
	Records int           `json:"records"`
	Lacking int           `json:"lacking,omitempty"` // further records that lack a required field
	Fields  []FieldResult `json:"fields,omitempty"`
}

// FieldResult is the result of one field.
type FieldResult struct {
	Field    string          `json:"field"` // with its parents: reviews.author
	Value    json.RawMessage `json:"value,omitempty"`
	Source   string          `json:"source,omitempty"` // the source that matched
	Found    int             `json:"found"`            // records or objects that have the field
	Missed   int             `json:"missed"`
	Why      string          `json:"why,omitempty"` // reason of the first miss
	Required bool            `json:"required,omitempty"`
}

// Records extracts records from a page. Without a URL, all rules apply.
func Records(in FieldsIn) (out FieldsOut, err error) {
	if in.Rules == "" && in.File == "" {
		return out, errors.New("no rules given")
	}
	rules, err := fields.Parse(cmp.Or(in.File, "rules"), []byte(in.Rules))
	if err != nil {
		return out, err
	}
	pg, err := readPage(in.PageIn, parse.Config{})
	if err != nil && pg.Base == "" {
		return out, err
	}
	p, is := fields.PageOf(cmp.Or(in.URL, unknownURL), in.HTML, cmp.Or(in.ContentType, in.Header.Get("Content-Type")), &pg)
	if !is {
		return out, fmt.Errorf("fields of %q: the body is %s, neither HTML nor XML", cmp.Or(in.URL, unknownURL), pg.Sniffed)
	}
	p.Any = in.URL == ""
	res := rules.NewReader().Read(p, true)
	out = FieldsOut{Records: []Record{}, Rules: []RuleResult{}, Cut: res.Cut, anyURL: p.Any}
	for _, r := range res.Records {
		out.Records = append(out.Records, Record{r.Rule, r.Values})
	}
	made := res.Rules
	for _, name := range rules.Names() {
		says := RuleResult{Rule: name}
		if len(made) > 0 && made[0].Rule == name {
			says.Matches, says.Records, says.Lacking = true, made[0].Records, made[0].Lacking
			for _, f := range made[0].Fields {
				says.Fields = append(says.Fields, FieldResult{Field: f.Path, Value: f.Value, Source: f.Source, Found: f.Found,
					Missed: f.Missed, Why: f.Why, Required: f.Required})
			}
			made = made[1:]
		}
		out.Rules = append(out.Rules, says)
	}
	return out, nil
}
