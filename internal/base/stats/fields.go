package stats

import (
	"fmt"
	"slices"
)

// FieldCounts say what a rule for records has found on a host's pages.
type FieldCounts struct {
	Rule       string       `json:"rule"`
	Host       string       `json:"host"`              // OtherHosts for those that are not counted apart
	Pages      int64        `json:"pages"`             // whose URL the rule is for
	Records    int64        `json:"records"`           //
	Incomplete int64        `json:"lacking,omitempty"` // records that were not made for want of a field that is required
	Fields     []FieldCount `json:"fields"`            // of those that pages were looked through for
}

// A FieldCount says of a field on how many pages it was.
type FieldCount struct {
	Field   string `json:"field"`
	Found   int64  `json:"found"`             // pages that had it
	Missed  int64  `json:"missed"`            // pages that had it nowhere
	Last    int64  `json:"missed_last"`       // of these, the last ones in a row
	Changed bool   `json:"changed,omitempty"` // it was there, and stays away as would hardly come by chance
}

// OtherHosts is the host of counts of those for which there was no room.
const OtherHosts = "(others)"

// PrintFields writes how many records there are, and what seems to be amiss: fields that are gone, those that never
// were, and rules that have made nothing.
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
