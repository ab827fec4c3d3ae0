package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/batch"
	"kumo/internal/content/policy"
)

// A URL contains a day's records of a URL.
type URL struct {
	URL      string
	Page     *Page           // nil if it has no XML record
	Document *batch.Document // nil if it cannot be read, as on a day that is not merged
	Trouble  error           // why Document cannot be read, if there is a Page
}

// Find finds a day's records of a URL. The error is fs.ErrNotExist if the day did not request it.
func (c *Collection) Find(ctx context.Context, date, url string) (*URL, error) {
	u := &URL{URL: url}
	var err error
	if u.Page, err = c.Page(ctx, date, url); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		u.Page = nil
	}
	if u.Document, err = c.Document(ctx, date, url); err != nil {
		u.Document = nil
		if u.Page == nil {
			return nil, err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			u.Trouble = err
		}
	}
	return u, nil
}

// Outcome returns the URL's outcome as text.
func (u *URL) Outcome() string {
	d := u.Document
	switch {
	case d == nil:
		return "a page; only its record can be read"
	case d.Rule != "":
		return fmt.Sprintf("excluded by the rule %s: %s", d.Rule, d.Detail)
	case d.Failure != "":
		return fmt.Sprintf("failed: %s: %s", d.Failure, d.Detail)
	case d.Change == page.Unchanged && !d.SameAs.Time.IsZero():
		return "unchanged since " + d.SameAs.Time.UTC().Format(time.RFC3339)
	case d.Change == page.Unchanged:
		return "unchanged"
	case d.RedirectTo != "":
		return "redirects to " + d.RedirectTo
	case d.NoArchive:
		return fmt.Sprintf("status %d; must not be archived (noarchive)", d.Status)
	case !d.MetaIndex:
		return fmt.Sprintf("status %d; must not be indexed (noindex)", d.Status)
	}
	return fmt.Sprintf("status %d", d.Status)
}

// Refused returns the verdict of a day's rules on a URL that was not requested. Its Rule is "" if no rule refuses it.
// If the day's rules are not recorded, the error is fs.ErrNotExist.
func (c *Collection) Refused(ctx context.Context, day *Day, url string) (policy.Verdict, error) {
	return batch.JudgeLink(ctx, c.place, c.asCollection(), day.State, url)
}

// Earlier returns, for an unchanged page, the XML record of the day on which the page was stored, and that day; nil if
// there is none.
func (c *Collection) Earlier(ctx context.Context, date string, u *URL) (pg *Page, day string, err error) {
	d := u.Document
	if d == nil || d.Change != page.Unchanged || d.SameAs.Time.IsZero() {
		return nil, "", nil
	}
	for _, day := range slices.Backward(c.Dates) {
		if day >= date {
			continue
		}
		pg, err := c.Page(ctx, day, u.URL)
		if err == nil && pg.Record.Fetched.Equal(d.SameAs.Time.Truncate(time.Second)) {
			return pg, day, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, "", err
		}
	}
	return nil, "", nil
}
