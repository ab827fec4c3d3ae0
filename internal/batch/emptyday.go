package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"kumo/internal/base/advice"
)

// ErrNothingFetched is the error for a day on which no page of a collection could be fetched, for example because the
// network is down or all seeds are refused.
var ErrNothingFetched = errors.New("nothing could be fetched")

// counterFound counts URLs that have a page, new or unchanged.
const counterFound = "found"

// nothingFetched returns the error for the collections without a page.
func nothingFetched(parts []*collectionDay) (err error) {
	for _, pt := range parts {
		if pt.state.Nothing != "" {
			err = errors.Join(err, fmt.Errorf("collection %s: %w: %s", pt.Code, ErrNothingFetched, pt.state.Nothing))
		}
	}
	if err == nil {
		return nil
	}
	return advice.With(err, "repeat the command to start the day again; the known URLs of earlier days are kept")
}

// maxReasons is the number of URLs that are listed with their reasons.
const maxReasons = 3

// sampleProblems returns a line with the outcomes of some URLs.
func (p *Pipeline) sampleProblems(ctx context.Context, pt *collectionDay) (string, error) {
	names, err := ListFiles(ctx, p.Place, DayFolder(pt.Collection, "doc", p.Date))
	if err != nil {
		return "", err
	}
	var told []string
	more := 0
	err = EachRecord(ctx, p.Place, names, func(r Record) error {
		d, err := ReadDocument(r.Key, r.Value)
		if len(told) == maxReasons {
			more++
		} else if err == nil {
			told = append(told, d.URL+" "+d.problem())
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if more > 0 {
		told = append(told, fmt.Sprintf("and %d more", more))
	}
	return cmp.Or(strings.Join(told, "; "), "no URL was requested"), nil
}

// problem returns a short reason why a URL has no page.
func (d *Document) problem() string {
	switch {
	case d.Rule != "":
		return fmt.Sprintf("(excluded by the rule %s: %s)", d.Rule, d.Detail)
	case d.Failure != "":
		return fmt.Sprintf("(%s)", d.Detail)
	case d.RedirectTo != "":
		return fmt.Sprintf("(redirects to %s)", d.RedirectTo)
	}
	return fmt.Sprintf("(status %d)", d.Status)
}
