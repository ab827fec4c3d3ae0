package robots

import (
	"cmp"
	"slices"
)

// A Line is a line of a robots.txt that says what may be fetched, without its comment. Where there is no such file, its
// number is 0 and its text says so.
type Line struct {
	Number int    `json:"number"` // from 1
	Text   string `json:"text"`   // "Disallow: /private/"
}

func (r *Rules) lineOf(u *rule) Line {
	return Line{int(u.number), r.text[u.line : u.line+uint32(u.lineLen)]}
}

// Lines are the Allow and Disallow lines that are meant for the agent, in the file's order.
func (r *Rules) Lines() []Line {
	lines := make([]Line, 0, len(r.rules))
	for i := range r.rules {
		lines = append(lines, r.lineOf(&r.rules[i]))
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(a.Number, b.Number) })
	return slices.Compact(lines) // one line may make two rules
}

// FromLines makes rules of what Lines has given. Of the rest of the file they know nothing.
func FromLines(lines []Line) *Rules {
	p := parser{named: true, forMine: true}
	for _, l := range lines {
		p.number = uint32(l.Number)
		p.line(l.Text)
	}
	return p.finish()
}
