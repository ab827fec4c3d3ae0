package robots

import (
	"cmp"
	"slices"
)

// A Line is a line of a robots.txt that applies to the agent, without its comment. If there is no such file, the number is 0
// and the text is the reason for the decision.
type Line struct {
	Number int    `json:"number"` // from 1
	Text   string `json:"text"`   // "Disallow: /private/"
}

func (r *Rules) lineOf(u *rule) Line {
	return Line{int(u.number), r.text[u.line : u.line+uint32(u.lineLen)]}
}

// Lines returns the Allow and Disallow lines and the statements about the use of pages that apply to the agent, in the
// file's order.
func (r *Rules) Lines() []Line {
	lines := make([]Line, 0, len(r.rules)+len(r.usage))
	for i := range r.rules {
		lines = append(lines, r.lineOf(&r.rules[i]))
	}
	for _, s := range r.usage {
		lines = append(lines, s.Line)
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(a.Number, b.Number) })
	return slices.Compact(lines) // a line may yield two rules
}

// FromLines returns rules with the given lines only.
func FromLines(lines []Line) *Rules {
	p := parser{named: true, forMine: true}
	for _, l := range lines {
		p.number = uint32(l.Number)
		p.line(l.Text)
	}
	return p.finish()
}
