package robots

import (
	"cmp"
	"slices"
	"strings"
)

// A Statement is a line about the use of pages: Content-Usage (draft-ietf-aipref-attach), Content-Signal
// (draft-romm-aipref-contentsignals) or License (RSL).
type Statement struct {
	Line
	Kind  StatementKind
	Value string // without the path

	pattern string // the path in normal form; "" if the line has none
}

// StatementKind is the key of a statement.
type StatementKind string

// The keys.
const (
	ContentUsage  StatementKind = "Content-Usage"
	ContentSignal StatementKind = "Content-Signal"
	License       StatementKind = "License"
)

const (
	maxStatements = 100     // of an agent; the rest of the lines is ignored
	maxStatement  = 1 << 10 // bytes of a line; a longer one is ignored, because half of a statement may mean its opposite
)

// statement processes a line about the use of pages. License lines hold for all agents, the others for their group;
// before the first group, they hold for all agents, too. For Allow and Disallow lines they do not end the sequence of
// User-agent lines (RFC 9309, 2.2.4), but for later statements they do: those are of the next group.
func (p *parser) statement(line, key, value string) {
	s := Statement{Line: Line{Number: int(p.number), Text: line}, Value: value}
	switch {
	case len(line) > maxStatement:
		return
	case strings.EqualFold(key, string(ContentUsage)):
		s.Kind = ContentUsage
	case strings.EqualFold(key, string(ContentSignal)):
		s.Kind = ContentSignal
	case strings.EqualFold(key, string(License)):
		s.Kind = License
	}
	if s.Kind == "" || value == "" {
		return
	}
	if s.Kind != License && (value[0] == '/' || value[0] == '*') {
		end := strings.IndexAny(value, " \t")
		if end < 0 {
			return // a path without a statement
		}
		s.pattern, s.Value = string(appendNormal(nil, value[:end], true)), strings.TrimLeft(value[end:], " \t")
	}
	s.Text, s.Value = strings.Clone(s.Text), strings.Clone(s.Value) // the rules must not refer to the whole file
	if s.Kind == License || !p.grouped {
		p.usage = appendStatement(p.usage, s)
		return
	}
	p.statedFor.ended = true
	switch {
	case p.statedFor.mine:
		p.mine.usage = appendStatement(p.mine.usage, s)
	case p.statedFor.any:
		p.any.usage = appendStatement(p.any.usage, s)
	}
}

func appendStatement(all []Statement, s Statement) []Statement {
	if len(all) >= maxStatements {
		return all
	}
	return append(all, s)
}

func inFileOrder(a, b []Statement) []Statement {
	if len(a)+len(b) == 0 {
		return nil
	}
	all := append(slices.Clone(a), b...)
	slices.SortStableFunc(all, func(a, b Statement) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// Usage returns the statements about the use of a URL, given as for [Rules.Allowed], in the file's order; nil if there
// are none. Of the Content-Usage lines, those with the longest matching path apply, of the Content-Signal lines too.
func (r *Rules) Usage(pathAndQuery string) []Statement {
	if len(r.usage) == 0 {
		return nil
	}
	target := canonical(normalTarget(pathAndQuery))
	longest := map[StatementKind]int{}
	var match []Statement
	for _, s := range r.usage {
		if s.pattern == "" || matches(canonical(s.pattern), target) {
			match = append(match, s)
			longest[s.Kind] = max(longest[s.Kind], len(s.pattern))
		}
	}
	return slices.DeleteFunc(match, func(s Statement) bool { return len(s.pattern) < longest[s.Kind] })
}

// MatchesPath reports whether a pattern with the wildcards of robots.txt, "*" and "$", matches a path and query.
func MatchesPath(pattern, pathAndQuery string) bool {
	if pattern == "" {
		return false
	}
	return matches(canonical(string(appendNormal(nil, pattern, true))), canonical(normalTarget(pathAndQuery)))
}
