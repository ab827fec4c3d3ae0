package maintext

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"kumo/internal/base/months"
)

// earliest is the first plausible date. Before it there were hardly any pages, but some dates are default values.
var earliest = time.Date(1995, 1, 1, 0, 0, 0, 0, time.UTC)

// isPlausible reports whether a page can have a date. One day of tolerance allows for time zones.
func isPlausible(t, now time.Time) bool { return !t.Before(earliest) && t.Before(now.AddDate(0, 0, 1)) }

// timeLayouts are the accepted layouts of declared times with a time zone. Each may have fractions of a second.
var timeLayouts = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05Z0700", "2006-01-02 15:04:05 -0700",
}

// firstDate returns the first declared date that is a plausible ISO date, or "".
func firstDate(now time.Time, declared ...string) string {
	for _, s := range declared {
		s = strings.TrimSpace(s)
		for _, layout := range timeLayouts {
			if t, err := time.Parse(layout, s); err == nil && isPlausible(t, now) {
				return t.Format(time.RFC3339)
			}
		}
		if len(s) < len(time.DateOnly) {
			continue
		}
		if t, err := time.Parse(time.DateOnly, s[:len(time.DateOnly)]); err == nil && isPlausible(t, now) {
			return t.Format(time.DateOnly)
		}
	}
	return ""
}

// hasDigits reports whether a text has at least n digits. It quickly excludes most texts from the search for dates.
func hasDigits(s string, n int) bool {
	for i := 0; i < len(s) && n > 0; i++ {
		if '0' <= s[i] && s[i] <= '9' {
			n--
		}
	}
	return n <= 0
}

// metaDates are names of meta elements with a publication date. Names that are also used for the last change are not
// included.
var metaDates = wordSet(`
	date pubdate publishdate publish-date publish_date published publication_date publicationdate publication-date
	pub_date originalpublicationdate og:published_time og:article:published_time article:published article:post_date
	article_date_original article.published article.created datepublished date_published datecreated date_created
	created parsely-pub-date sailthru.date cxenseparse:recs:publishtime shareaholic:article_published_time dc.date
	dc.date.created dc.created dcterms.date dcterms.created dcterm.created citation_date citation_online_date
	timestamp displaydate release_date article:publicationdate article_publish_date bt:pubdate nrk_date
	rnews:datepublished prism.publicationdate vr:published_time dateposted firstpublished creationdatetime`)

const (
	maxShortText = 160 // bytes of an element about the page; longer texts may mention other dates
	maxLoneDate  = 40  // characters of a text that is little more than a date
)

// shortTextOf returns the text of an element, or "" if it is long.
func (d *document) shortTextOf(n *html.Node) string {
	var b strings.Builder
	for c := range d.near(n) {
		if c.Type == html.TextNode {
			if b.Len()+len(c.Data) > 4*maxShortText {
				return ""
			}
			b.WriteString(c.Data)
			b.WriteByte(' ')
		}
	}
	if s := squeeze(b.String()); len(s) <= maxShortText {
		return s
	}
	return ""
}

var (
	yearFirst = regexp.MustCompile(`(?:^|\D)((?:19|20)\d\d)[-/.](\d\d?)[-/.](\d\d?)(?:\D|$)`)
	eight     = regexp.MustCompile(`^((?:19|20)\d\d)(\d\d)(\d\d)(?:\D|$|\d{6}$)`)
	yearLast  = regexp.MustCompile(`(?:^|\D)(\d\d?)([./-])\s?(\d\d?)[./-]\s?((?:19|20)\d\d|\d\d)(?:\D|$)`)
	dayMonth  = regexp.MustCompile(
		`(?:^|\D)(\d\d?)(?:st|nd|rd|th|er|º)?[.,]?[\s-]+(?:de\s+|d’|d')?(\pL[\pL\pM]+)\.?,?[\s-]+(?:de\s+|del\s+)?((?:19|20)\d\d)(?:\D|$)`,
	)
	monthDay   = regexp.MustCompile(`(\pL[\pL\pM]+)\.?[\s-]+(\d\d?)(?:st|nd|rd|th)?,?[\s-]+((?:19|20)\d\d)(?:\D|$)`)
	yearMonth  = regexp.MustCompile(`((?:19|20)\d\d)\.?[\s-]+(\pL[\pL\pM]+)\.?[\s-]+(\d\d?)(?:\D|$)`)
	httpLayout = []string{time.RFC1123, time.RFC1123Z, time.RFC850, "Mon, 2 Jan 2006 15:04:05 MST",
		"Mon, 2 Jan 2006 15:04:05 -0700"}
)

// A dateReader parses dates. Of a day and a month in digits, the day comes first, unless the page is American, that is
// not a valid date, or the weekday beside it says otherwise.
type dateReader struct {
	now        time.Time
	monthFirst bool
}

// read parses the first date in a short text, with the time if it is in a standard layout.
func (r dateReader) read(s string) string {
	s = asciiDigits(strings.TrimSpace(s))
	if len(s) > maxShortText || !hasDigits(s, 4) {
		return ""
	}
	if day := firstDate(r.now, s); day != "" {
		return day
	}
	for _, layout := range httpLayout {
		if t, err := time.Parse(layout, s); err == nil && isPlausible(t, r.now) {
			return t.Format(time.RFC3339)
		}
	}
	for _, form := range []*regexp.Regexp{yearFirst, eight, signs} {
		if day := firstDay(form, s, r.now); day != "" {
			return day
		}
	}
	if m := yearLast.FindStringSubmatch(s); m != nil && !numbersSection(s, m) {
		if day := r.ordered(s, m); day != "" {
			return day
		}
	}
	lower := strings.ToLower(s)
	for _, form := range []struct {
		form             *regexp.Regexp
		year, month, day int // regexp groups
	}{{dayMonth, 3, 2, 1}, {monthDay, 3, 1, 2}, {yearMonth, 1, 2, 3}} {
		for _, m := range form.form.FindAllStringSubmatch(lower, 4) {
			if day := dayOf(m[form.year], strconv.Itoa(months.Number(m[form.month])), m[form.day], r.now); day != "" {
				return day
			}
		}
	}
	return ""
}

// ordered returns the date of a match of yearLast.
func (r dateReader) ordered(s string, m []string) string {
	first, second := dayOf(m[4], m[3], m[1], r.now), dayOf(m[4], m[1], m[3], r.now)
	if r.monthFirst && m[2] == "/" {
		first, second = second, first
	}
	if is, ok := weekdayIn(s); ok {
		if t, err := time.Parse(time.DateOnly, second); err == nil && t.Weekday() == is {
			return second
		}
	}
	return cmp.Or(first, second)
}

// weekdayIn returns the weekday whose English name, or its first three letters, is the first word of a text.
func weekdayIn(s string) (time.Weekday, bool) {
	word := s[:len(s)-len(strings.TrimLeft(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz"))]
	for day := time.Sunday; day <= time.Saturday; day++ {
		if len(word) >= 3 && len(word) <= len(day.String()) && strings.EqualFold(day.String()[:len(word)], word) {
			return day, true
		}
	}
	return 0, false
}

// asciiDigits replaces the decimal digits of other scripts.
func asciiDigits(s string) string {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return strings.Map(func(r rune) rune {
				for _, zero := range "٠۰०০๐０" {
					if r >= zero && r <= zero+9 {
						return '0' + r - zero
					}
				}
				return r
			}, s)
		}
	}
	return s
}

// numbersSection reports whether a match of yearLast is the number of a section or version rather than a date: "1.1.10
// Getting started", "2.1.1.10".
func numbersSection(s string, m []string) bool {
	if m[2] != "." || len(m[4]) != 2 {
		return false
	}
	before, after, _ := strings.Cut(s, m[0])
	number := strings.Trim(m[0], " \t") // includes the characters around the date
	if strings.HasPrefix(number, ".") && endsInDigit(before) || strings.HasSuffix(number, ".") && beginsWithDigit(after) {
		return true
	}
	short := len(m[1]) == 1 && len(m[3]) == 1 // dates usually have leading zeros
	next, _ := utf8.DecodeRuneInString(after)
	return short && before == "" && beginsWithDigit(s) && strings.HasSuffix(m[0], " ") && unicode.IsLetter(next)
}

func beginsWithDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

func endsInDigit(s string) bool { return s != "" && s[len(s)-1] >= '0' && s[len(s)-1] <= '9' }

var (
	// Year, month and day with their Chinese, Japanese or Korean signs, and Korean dates with full stops and spaces.
	signs = regexp.MustCompile(`(\d{4})\s*[年년]\s*(\d{1,2})\s*[月월]\s*(\d{1,2})\s*[日일]|\b(\d{4})\. (\d{1,2})\. (\d{1,2})\.`)
	// /2024/05/17/, /2024/0517/ and /20240517/.
	inPath = regexp.MustCompile(`[/_-][A-Za-z_]*((?:19|20)\d\d)[-/_]?(\d\d)[-/_]?(\d\d)(?:\D|$)`)
)

// pathOf returns the part of a URL after the host.
func pathOf(page string) string {
	_, rest, _ := strings.Cut(page, "://")
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[i:]
	}
	return ""
}

// firstDay converts the first match of a regexp to a date. The groups are year, month and day, repeated for each
// notation.
func firstDay(form *regexp.Regexp, s string, now time.Time) string {
	match := form.FindStringSubmatch(s)
	for len(match) > 3 && match[1] == "" {
		match = match[3:]
	}
	if len(match) < 4 {
		return ""
	}
	return dayOf(match[1], match[2], match[3], now)
}

// dayOf converts numbers to a date. It returns "" if the date is invalid. Two-digit years belong to this century if
// possible, otherwise to the last.
func dayOf(year, month, day string, now time.Time) string {
	m, _ := strconv.Atoi(month)
	d, _ := strconv.Atoi(day)
	if len(year) == 2 {
		return cmp.Or(firstDate(now, fmt.Sprintf("20%s-%02d-%02d", year, m, d)),
			firstDate(now, fmt.Sprintf("19%s-%02d-%02d", year, m, d)))
	}
	return firstDate(now, fmt.Sprintf("%s-%02d-%02d", year, m, d))
}
