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

// A URL is what a day has of one.
type URL struct {
	URL      string
	Page     *Page           // nil: it has no XML record
	Document *batch.Document // nil: it cannot be had, as of a day that is not merged
	Trouble  error           // why the Document cannot be had, though there is a Page
}

// Find finds what a day has of a URL. The error of a URL that the day did not ask for is fs.ErrNotExist.
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

// Outcome says what came of the URL, in words.
func (u *URL) Outcome() string {
	d := u.Document
	switch {
	case d == nil:
		return "a page, of which only the record can be read"
	case d.Rule != "":
		return fmt.Sprintf("left out by the rule %s: %s", d.Rule, d.Detail)
	case d.Failure != "":
		return fmt.Sprintf("failed: %s: %s", d.Failure, d.Detail)
	case d.Change == page.Unchanged && !d.SameAs.Time.IsZero():
		return "unchanged since " + d.SameAs.Time.UTC().Format(time.RFC3339)
	case d.Change == page.Unchanged:
		return "unchanged"
	case d.RedirectTo != "":
		return "redirects to " + d.RedirectTo
	case d.NoArchive:
		return fmt.Sprintf("status %d; it asks not to be archived", d.Status)
	case !d.MetaIndex:
		return fmt.Sprintf("status %d; it asks not to be indexed", d.Status)
	}
	return fmt.Sprintf("status %d", d.Status)
}

// Refused is why the rules of a day refuse a URL that the day did not ask for; its Rule is "" if none does. The error of
// a day whose rules are not recorded is fs.ErrNotExist.
func (c *Collection) Refused(ctx context.Context, day *Day, url string) (policy.Verdict, error) {
	return batch.JudgeLink(ctx, c.place, c.asCollection(), day.State, url)
}

// Earlier is the XML record of the day on which a page was stored that has not changed since, and that day; nil if
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
