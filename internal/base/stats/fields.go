package stats

import (
	"fmt"
	"slices"
)

// FieldCounts are the results of an extraction rule on a host's pages.
type FieldCounts struct {
	Rule       string       `json:"rule"`
	Host       string       `json:"host"`  // OtherHosts for hosts beyond the limit
	Pages      int64        `json:"pages"` // pages that match the rule's URL patterns
	Records    int64        `json:"records"`
	Incomplete int64        `json:"lacking,omitempty"` // records dropped because a required field was missing
	Fields     []FieldCount `json:"fields"`            // fields that were looked for
}

// A FieldCount is the number of pages with a field.
type FieldCount struct {
	Field   string `json:"field"`
	Found   int64  `json:"found"`             // pages with the field
	Missed  int64  `json:"missed"`            // pages without it
	Last    int64  `json:"missed_last"`       // consecutive pages without it, up to the last page
	Changed bool   `json:"changed,omitempty"` // the field disappeared, which is unlikely to be chance
}

// OtherHosts is the Host of FieldCounts for hosts beyond the limit.
const OtherHosts = "(others)"

// PrintFields prints the number of records and possible problems: fields that disappeared, and fields that were never
// found.
func (r *Report) PrintFields(row func(string, string, ...any)) {
	if len(r.Fields) == 0 {
		return
	}
	var pages, records, lacking int64
	var rules, amiss []string
	for _, c := range r.Fields {
		pages, records, lacking = pages+c.Pages, records+c.Records, lacking+c.Incomplete
		if !slices.Contains(rules, c.Rule) {
			rules = append(rules, c.Rule)
		}
		for _, m := range c.Fields {
			at := fmt.Sprintf("%s.%s at %s", c.Rule, m.Field, c.Host)
			switch {
			case m.Changed:
				amiss = append([]string{fmt.Sprintf("%s was on %s, and is not on the last %d: has the site changed?", at,
					Count(m.Found, "pages"), m.Last)}, amiss...)
			case m.Found == 0 && m.Missed > 0:
				amiss = append(amiss, fmt.Sprintf("%s is on none of %s", at, Count(m.Missed, "pages")))
			}
		}
	}
	more := ""
	if lacking > 0 {
		more = fmt.Sprintf("; %d more lacked a field that is required", lacking)
	}
	row("fields", "%s of %s, by %s%s", Count(records, "records"), Count(pages, "pages"), Count(len(rules), "rules"), more)
	for i, text := range amiss {
		if i == listed {
			row("", "and %d more: see fields in report.json", len(amiss)-i)
			break
		}
		row("", "%s", text)
	}
}
