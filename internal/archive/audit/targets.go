package audit

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"kumo/internal/base/item"
	"kumo/internal/state/store/jsonl"
)

// Marks of the records that are joined by the URL of a target. A page's own record sorts before what others say of it.
const (
	markPage  = "a"
	markClaim = "b"
	markSelf  = "c"
)

// addCanonical adds what a page is as a target, and its claim of another canonical URL.
func (a *auditor) addCanonical(p *jsonl.PageLine, canonical string, d directiveSet) error {
	about := "-"
	if d.noIndex {
		about = "n"
	}
	if err := a.add(canonicals, p.URL, markPage+about+canonical); err != nil {
		return err
	}
	if canonical == "" || canonical == p.URL {
		return nil
	}
	return a.add(canonicals, canonical, markClaim+p.URL)
}

// canonicalRows writes the problems of canonical URLs.
func (a *auditor) canonicalRows(ctx context.Context, out *rows) error {
	of, noIndex, next := "", false, ""
	return a.each(ctx, canonicals, func(url, value string) error {
		if url != of {
			of, noIndex, next = url, false, ""
		}
		if about, is := strings.CutPrefix(value, markPage); is {
			noIndex, next = about[0] == 'n', about[1:]
			return nil
		}
		from := value[len(markClaim):]
		row := func(problem, status, leadsTo string) error {
			return out.row(problem, problem, from, url, status, leadsTo)
		}
		var errs []error
		if item.HostOf(from) != item.HostOf(url) {
			errs = append(errs, row("other host", "", ""))
		}
		if problem, status, leadsTo := a.target(url); problem != "" {
			errs = append(errs, row(problem, status, leadsTo))
		}
		if next != "" && next != url {
			errs = append(errs, row("chain", "", next))
		}
		if noIndex {
			errs = append(errs, row("noindex", "", ""))
		}
		return errors.Join(errs...)
	})
}

// addLanguages adds what a page is as a target, and its claims of pages in other languages.
func (a *auditor) addLanguages(p *jsonl.PageLine) error {
	own := []string{markPage}
	self := len(p.HrefLang) == 0
	for _, v := range p.HrefLang {
		to := a.Finder.Canonical(v.URL)
		own = append(own, to)
		self = self || to == p.URL
		if err := a.add(languages, to, markClaim+p.URL+"\x00"+v.Lang); err != nil {
			return err
		}
	}
	if !self {
		if err := a.add(languages, p.URL, markSelf); err != nil {
			return err
		}
	}
	return a.add(languages, p.URL, strings.Join(own, "\x00"))
}

// languageRows writes the problems of links to other languages.
func (a *auditor) languageRows(ctx context.Context, out *rows) error {
	of, known := "", false
	var back []string // pages that the target names
	return a.each(ctx, languages, func(url, value string) error {
		if url != of {
			of, known, back = url, false, nil
		}
		switch value[:1] {
		case markPage:
			known, back = true, strings.Split(value, "\x00")[1:]
			return nil
		case markSelf:
			return out.row("no link to itself", "no link to itself", url, "", "", "", "")
		}
		from, lang, _ := strings.Cut(value[len(markClaim):], "\x00")
		row := func(problem, status, leadsTo string) error {
			return out.row(problem, problem, from, lang, url, status, leadsTo)
		}
		var errs []error
		if !validLanguage(lang) {
			errs = append(errs, row("invalid code", "", ""))
		}
		if problem, status, leadsTo := a.target(url); problem != "" {
			errs = append(errs, row(problem, status, leadsTo))
		}
		if known && from != url && !slices.Contains(back, from) {
			errs = append(errs, row("no return link", "", ""))
		}
		return errors.Join(errs...)
	})
}

// validLanguage reports whether a value of hreflang is x-default, or a language of ISO 639 with an optional script and
// an optional region of ISO 3166-1 (or of UN M.49).
func validLanguage(code string) bool {
	if strings.EqualFold(code, "x-default") {
		return true
	}
	parts := strings.Split(code, "-")
	if _, err := language.ParseBase(parts[0]); err != nil || len(parts[0]) > 3 {
		return false
	}
	parts = parts[1:]
	if len(parts) > 0 && len(parts[0]) == 4 {
		if _, err := language.ParseScript(parts[0]); err != nil {
			return false
		}
		parts = parts[1:]
	}
	if len(parts) == 0 {
		return true
	}
	region, err := language.ParseRegion(parts[0])
	if err != nil || len(parts) > 1 {
		return false
	}
	// the library knows UK as another name of GB, but search engines do not
	return len(parts[0]) == 3 || region.IsCountry() && region.Canonicalize() == region
}
