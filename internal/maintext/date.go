package maintext

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/markusmobius/go-htmldate"
	"golang.org/x/net/html"
)

// earliest is the first day that is believed: before it there were hardly any pages, but there are dates that were never set.
var earliest = time.Date(1995, 1, 1, 0, 0, 0, 0, time.UTC)

// believable reports whether a page can be of that time. A day is let pass for time zones.
func believable(t, now time.Time) bool { return !t.Before(earliest) && t.Before(now.AddDate(0, 0, 1)) }

// instants are the forms of a time with its zone that a page declares; fractions of a second may follow each.
var instants = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700", "2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05Z0700", "2006-01-02 15:04:05 -0700",
}

// firstDate is the first of the declared dates that is an ISO date and can be believed, "" if none is. Others are left to the
// library.
func firstDate(now time.Time, declared ...string) string {
	for _, s := range declared {
		s = strings.TrimSpace(s)
		for _, layout := range instants {
			if t, err := time.Parse(layout, s); err == nil && believable(t, now) {
				return t.Format(time.RFC3339)
			}
		}
		if len(s) < len(time.DateOnly) {
			continue
		}
		if t, err := time.Parse(time.DateOnly, s[:len(time.DateOnly)]); err == nil && believable(t, now) {
			return t.Format(time.DateOnly)
		}
	}
	return ""
}

// findDate gives the day that a page was published where its head does not say, and the time where it is there with its zone.
// Days with a month in words are found by the library's quick search, in some languages of Europe and only where an element's
// name says that it holds a date; its slow search is not asked.
func findDate(doc *html.Node, page string, now time.Time) string {
	r, err := htmldate.FromDocument(doc, htmldate.Options{
		URL: page, UseOriginalDate: true, ExtractTime: true, SkipExtensiveSearch: true, DeferUrlExtractor: true,
		MinDate: earliest, MaxDate: now.AddDate(0, 0, 1),
	})
	switch {
	case err != nil || r.IsZero() || r.DateTime.Day() == 1 && !first.MatchString(r.SrcString):
		return eastAsianDate(doc, page, now)
	case r.HasTime && r.HasTimezone:
		return r.DateTime.Format(time.RFC3339)
	}
	return r.DateTime.Format(time.DateOnly)
}

// first finds the first of a month. Without it, the library has read a month only and made up the day.
var first = regexp.MustCompile(`01(?:\D|$)|(?:^|\D)1(?:\D|$)`)

var (
	// Year, month and day with their signs in Chinese, Japanese or Korean, and in Korean with full stops and spaces.
	signs = regexp.MustCompile(`(\d{4})\s*[年년]\s*(\d{1,2})\s*[月월]\s*(\d{1,2})\s*[日일]|\b(\d{4})\. (\d{1,2})\. (\d{1,2})\.`)
	// Eight digits, or slashes elsewhere than between the three, as in /2024/0517/ and /20240517/.
	inPath = regexp.MustCompile(`/[A-Za-z_]*((?:19|20)\d\d)[-/]?(\d\d)[-/]?(\d\d)(?:\D|$)`)
)

// eastAsianDate looks for a day as it is written in East Asia: in the page's short texts, as a line under the headline is one,
// then in its URL, where the library does not see a day without its two slashes.
func eastAsianDate(doc *html.Node, page string, now time.Time) string {
	const short = 160 // bytes; a longer text tells of other days
	for n := range doc.Descendants() {
		if n.Type != html.TextNode || len(n.Data) > short {
			continue
		}
		if day := firstDay(signs.FindStringSubmatch(n.Data), now); day != "" {
			return day
		}
	}
	return firstDay(inPath.FindStringSubmatch(page), now)
}

// firstDay makes a date of a match whose groups are years, months and days, three for each way to write them.
func firstDay(match []string, now time.Time) string {
	for len(match) > 3 && match[1] == "" {
		match = match[3:]
	}
	if len(match) < 4 {
		return ""
	}
	month, _ := strconv.Atoi(match[2])
	day, _ := strconv.Atoi(match[3])
	return firstDate(now, fmt.Sprintf("%s-%02d-%02d", match[1], month, day))
}
