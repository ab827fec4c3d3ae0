package maintext

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"kumo/internal/lab/sitepages"
)

// labelledSeed and labelledEach generate the labelled pages.
const (
	labelledSeed = 20261130
	labelledEach = 4 // pages of each template
)

// floors are the least F1 of main texts by kind, a little below the measured values.
var floors = map[string]float64{"article": 0.990, "forum": 0.992, "product": 0.987, "listing": 0.977,
	"documentation": 0.982, "service": 0.996, "other": 0.996}

// A rate counts the labels that were found.
type rate struct{ found, all int }

func (r *rate) add(got, want string) {
	if want != "" {
		r.all++
		r.found += one(got == want)
	}
}

func (r rate) String() string { return fmt.Sprintf("%d/%d", r.found, r.all) }

// A report has the sums over the pages of a kind.
type report struct {
	pages, empty                     int
	sum                              sitepages.Score
	kinds, headlines, dates, authors rate
	commented                        int
	comments                         float64 // sum of the F1 of comments
	falseComments                    int     // pages without comments for which comments were returned
	falseAuthors, falseDates         int     // pages without an author or a date for which one was returned
}

func (r *report) add(p *sitepages.Page, got *Text) sitepages.Score {
	s := sitepages.ScoreOf(got.Text, p.Text, p.Optional)
	r.pages++
	r.empty += one(got.Text == "")
	r.sum.Precision, r.sum.Recall, r.sum.F1 = r.sum.Precision+s.Precision, r.sum.Recall+s.Recall, r.sum.F1+s.F1
	r.kinds.add(got.Kind, p.Kind)
	r.headlines.add(got.Headline, p.Headline)
	r.dates.add(got.Published[:min(len(got.Published), 10)], p.Published)
	r.authors.add(got.Author, p.Author)
	if p.Kind != "forum" { // threads have the author and the date of the first post, which not all templates label
		r.falseAuthors += one(p.Author == "" && got.Author != "")
		r.falseDates += one(p.Published == "" && got.Published != "")
	}
	if p.Comments == "" {
		r.falseComments += one(got.Comments != "")
		return s
	}
	r.commented++
	r.comments += sitepages.ScoreOf(got.Comments, p.Comments, "").F1
	return s
}

func (r *report) f1() float64 { return r.sum.F1 / float64(r.pages) }

func (r *report) String() string {
	n := float64(r.pages)
	return fmt.Sprintf("%3d pages  precision %.3f  recall %.3f  F1 %.3f  empty %d  kind %s  headline %s  date %s  author %s  "+
		"comments %.3f of %d; false authors %d, dates %d, comments %d", r.pages, r.sum.Precision/n, r.sum.Recall/n, r.f1(), r.empty, r.kinds, r.headlines,
		r.dates, r.authors, r.comments/float64(max(r.commented, 1)), r.commented, r.falseAuthors, r.falseDates, r.falseComments)
}

// TestLabelledMarkdown counts the links of the main texts, the items of their lists and the cells of their tables that
// the Markdown has in the same form.
func TestLabelledMarkdown(t *testing.T) {
	var links, items, cells rate
	for _, p := range sitepages.Pages(labelledSeed, labelledEach) {
		got, err := ExtractMarkdown([]byte(p.HTML), p.URL, "")
		if err != nil {
			t.Fatal(err)
		}
		base, err := url.Parse(p.URL)
		if err != nil {
			t.Fatal(err)
		}
		var inItems, inCells []string
		for line := range strings.Lines(got.Text) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "|") {
				for cell := range strings.SplitSeq(line, "|") {
					inCells = append(inCells, lettersOf(cell))
				}
			} else if isItem.MatchString(line) {
				inItems = append(inItems, lettersOf(isItem.ReplaceAllString(line, "")))
			}
		}
		missing := []string{}
		count := func(r *rate, what string, found bool) {
			r.all++
			r.found += one(found)
			if !found {
				missing = append(missing, what)
			}
		}
		for _, href := range p.Markup.Links {
			to, err := base.Parse(href)
			if err != nil {
				t.Fatal(err)
			}
			count(&links, href, strings.Contains(got.Text, "]("+to.String()+")"))
		}
		for _, item := range p.Markup.Items {
			count(&items, item, slices.Contains(inItems, lettersOf(item)))
		}
		for _, cell := range p.Markup.Cells {
			count(&cells, cell, slices.Contains(inCells, lettersOf(cell)))
		}
		if len(missing) > 0 {
			t.Logf("%s.%s: %d are missing, such as %q", p.Program, p.Kind, len(missing), missing[:min(3, len(missing))])
		}
	}
	t.Logf("links %s, items %s, cells %s", links, items, cells)
	for name, r := range map[string]rate{"links": links, "items": items, "cells": cells} {
		if r.all < 100 || share(r) < 0.95 {
			t.Errorf("%s: %s are in the Markdown, at least 0.95 expected", name, r)
		}
	}
}

var (
	isItem   = regexp.MustCompile(`^(?:-|\d+\.)\s+`)
	linkEnds = regexp.MustCompile(`\]\([^)]*\)`)
)

// lettersOf returns the letters and digits of Markdown, without the addresses of links.
func lettersOf(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, linkEnds.ReplaceAllString(s, ""))
}

// TestLabelled reports how well the labelled pages are read, by kind, and fails below the measured values.
func TestLabelled(t *testing.T) {
	all, kinds := &report{}, map[string]*report{}
	for _, p := range sitepages.Pages(labelledSeed, labelledEach) {
		got, err := extract([]byte(p.HTML), p.URL, now)
		if err != nil {
			t.Fatal(err)
		}
		if kinds[p.Kind] == nil {
			kinds[p.Kind] = &report{}
		}
		all.add(&p, &got)
		s := kinds[p.Kind].add(&p, &got)
		if s.F1 < 0.97 {
			t.Logf("%s.%s: precision %.3f, recall %.3f\n got %q\nwant %q", p.Program, p.Kind, s.Precision, s.Recall, got.Text,
				p.Text)
		}
		if p.Author == "" && got.Author != "" || p.Published == "" && got.Published != "" {
			t.Logf("%s.%s: author %q, date %q, but it has none", p.Program, p.Kind, got.Author, got.Published)
		}
		if got.Kind != p.Kind || p.Headline != "" && got.Headline != p.Headline || p.Author != "" && got.Author != p.Author ||
			!strings.HasPrefix(got.Published, p.Published) {
			t.Logf("%s.%s: kind %s, headline %q, want %q; author %q, want %q; date %q, want %q", p.Program, p.Kind, got.Kind,
				got.Headline, p.Headline, got.Author, p.Author, got.Published, p.Published)
		}
	}
	for _, kind := range sitepages.Kinds {
		t.Logf("%-13s %s", kind, kinds[kind])
		if kinds[kind].f1() < floors[kind] {
			t.Errorf("%s: F1 %.3f is below %.3f", kind, kinds[kind].f1(), floors[kind])
		}
	}
	t.Logf("%-13s %s", "all", all)
	for name, part := range map[string]struct{ got, floor float64 }{
		"kind":     {share(all.kinds), 0.93},
		"headline": {share(all.headlines), 0.98},
		"date":     {share(all.dates), 0.97},
		"author":   {share(all.authors), 0.92},
		"comments": {all.comments / float64(all.commented), 0.95},
	} {
		if part.got < part.floor {
			t.Errorf("%s: %.3f is below %.3f", name, part.got, part.floor)
		}
	}
	if all.pages < 150 || all.empty > 0 || all.falseComments+all.falseAuthors+all.falseDates > 0 {
		t.Errorf("%d pages, %d without text; false comments %d, authors %d, dates %d", all.pages, all.empty,
			all.falseComments, all.falseAuthors, all.falseDates)
	}
}

func share(r rate) float64 { return float64(r.found) / float64(r.all) }
