// Package value parses numbers, dates and booleans from the text of pages, as people write them.
package value

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"kumo/internal/base/months"
)

const (
	maxDigits = 40  // of a number
	maxDate   = 200 // bytes of a text that may be a date
)

// Number parses the first number in a text, and returns it in JSON's form: digits, and a point before decimals.
//
// Digits may be those of any script. White space, apostrophes and underscores between them separate groups. If both
// points and commas occur, the last one is the decimal sign and the others separate groups. A sign that occurs more
// than once separates groups. A single comma before three digits also does ("1,234" is 1234); a single point never does
// ("1.234" is 1.234). decimal, "." or ",", overrides this and names the decimal sign; "" means to decide by the text.
func Number(text, decimal string) (string, error) {
	digits, negative, err := numeral(text)
	if err != nil {
		return "", err
	}
	points, commas := strings.Count(digits, "."), strings.Count(digits, ",")
	sign := decimal
	switch last := strings.LastIndexAny(digits, ".,"); {
	case sign != "" || last < 0:
	case points > 0 && commas > 0:
		sign = digits[last : last+1]
	case points > 1 || commas > 1, commas == 1 && len(digits)-last == 4 && last > 0 && last <= 3 && digits[0] != '0':
		sign = "none"
	default:
		sign = digits[last : last+1]
	}
	var b strings.Builder
	for i, c := range digits {
		switch {
		case string(c) == sign && strings.Count(digits, sign) > 1:
			return "", fmt.Errorf("more than one decimal sign in %q", digits)
		case string(c) == sign:
			if i == 0 {
				b.WriteByte('0')
			}
			b.WriteByte('.')
		case c != '.' && c != ',':
			b.WriteRune(c)
		}
	}
	whole, part, has := strings.Cut(b.String(), ".")
	if len(whole)+len(part) > maxDigits {
		return "", fmt.Errorf("the number has more than %d digits", maxDigits)
	}
	number := cmp.Or(strings.TrimLeft(whole, "0"), "0")
	if has && part != "" {
		number += "." + part
	}
	if negative && strings.Trim(number, "0.") != "" {
		number = "-" + number
	}
	return number, nil
}

// numeral returns the first number: its digits in ASCII with the points and commas between them, and whether it is
// negative.
func numeral(text string) (digits string, negative bool, err error) {
	first := strings.IndexFunc(text, func(r rune) bool { return digitOf(r) >= 0 })
	if first < 0 {
		return "", false, errors.New("no digit")
	}
	head, sign := strings.TrimRightFunc(text[:first], func(r rune) bool {
		return unicode.IsSpace(r) || unicode.Is(unicode.Sc, r)
	}), byte(0)
	if before, is := strings.CutSuffix(head, "."); is && len(head) == first && !endsInLetter(before) { // .5
		sign, head = '.', before
	}
	for _, minus := range []string{"-", "−"} {
		if before, is := strings.CutSuffix(head, minus); is && !endsInLetter(before) {
			negative = true
		}
	}
	var b []byte
	if sign != 0 {
		b = append(b, '0', sign)
	}
	rest := []rune(text[first:min(len(text), first+8*maxDigits)])
	for i := 0; i < len(rest); i++ {
		if d := digitOf(rest[i]); d >= 0 {
			b = append(b, byte('0'+d))
			continue
		}
		n := digitsAt(rest[i+1:])
		switch c := rest[i]; {
		case n == 0:
			return string(b), negative, nil
		case c == '.' || c == '٫' || c == ',':
			b = append(b, map[rune]byte{'.': '.', '٫': '.', ',': ','}[c])
		case c == '\'' || c == '’' || c == '_' || c == '٬':
		case unicode.IsSpace(c) && n == 3 && i <= 3:
			rest, i = rest[i+1:], -1 // "12 345", but not "2 500", which may be two numbers
		default:
			return string(b), negative, nil
		}
	}
	return string(b), negative, nil
}

// digitsAt returns the number of digits at the beginning of a text.
func digitsAt(text []rune) (n int) {
	for n < len(text) && digitOf(text[n]) >= 0 {
		n++
	}
	return n
}

func endsInLetter(s string) bool {
	r := []rune(s[max(0, len(s)-4):])
	return len(r) > 0 && (unicode.IsLetter(r[len(r)-1]) || unicode.IsDigit(r[len(r)-1]))
}

// digitOf returns the value of a digit of any script, -1 for other characters. The digits of a script are consecutive.
func digitOf(r rune) int {
	if '0' <= r && r <= '9' {
		return int(r - '0')
	}
	if r < 0x660 || !unicode.IsDigit(r) {
		return -1
	}
	for _, in := range unicode.Nd.R16 {
		if rune(in.Lo) <= r && r <= rune(in.Hi) {
			return int(r-rune(in.Lo)) % 10
		}
	}
	return -1
}

// Bool parses true, yes, on and 1, and false, no, off and 0, in any letter case.
func Bool(text string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, errors.New("want true, yes, on, 1 or false, no, off, 0")
}

// A Layout is a format of dates.
type Layout struct {
	text   string
	layout string // of package time
	unix   bool
}

// directives are the supported directives of strptime.
var directives = map[byte]string{'Y': "2006", 'y': "06", 'm': "1", 'd': "2", 'e': "2", 'H': "15", 'I': "3", 'M': "04",
	'S': "05", 'p': "PM", 'b': "Jan", 'h': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday", 'z': "-0700", 'Z': "MST",
	'f': "000000", '%': "%", 'T': "15:04:05", 'F': "2006-1-2", 'R': "15:04"}

// ParseLayout parses a layout of strptime, such as "%d.%m.%Y"; "unix" means seconds since 1970. Names of months may be
// in any supported language.
func ParseLayout(text string) (*Layout, error) {
	if text == "unix" {
		return &Layout{text: text, unix: true}, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			if '0' <= text[i] && text[i] <= '9' {
				return nil, errors.New("a layout contains no digits, only directives such as %Y, %m, %d")
			}
			b.WriteByte(text[i])
			continue
		}
		i++
		if i == len(text) || directives[text[i]] == "" {
			return nil, fmt.Errorf("unknown directive %%%s; directives: %%%s", text[i:min(i+1, len(text))],
				strings.Join(known(), " %"))
		}
		b.WriteString(directives[text[i]])
	}
	if !strings.Contains(text, "%") {
		return nil, errors.New("want a layout such as %d.%m.%Y, or unix for seconds since 1970")
	}
	return &Layout{text: text, layout: b.String()}, nil
}

func known() (all []string) {
	for c := range directives {
		all = append(all, string(c))
	}
	slices.Sort(all)
	return all
}

func (l *Layout) String() string { return l.text }

// Read parses a date with the layout, and returns it in the form of Date.
func (l *Layout) Read(text string) (string, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxDate {
		return "", fmt.Errorf("a text of %d bytes is not a date", len(text))
	}
	if l.unix {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds < -1<<36 || seconds > 1<<37 {
			return "", errors.New("want seconds since 1970")
		}
		return time.Unix(seconds, 0).UTC().Format(time.RFC3339), nil
	}
	for _, short := range []bool{false, true} {
		t, err := time.Parse(l.layout, toEnglish(text, short))
		switch {
		case err != nil:
		case strings.Contains(l.layout, "-0700") || strings.Contains(l.layout, "MST"):
			return t.Format(time.RFC3339), nil
		case strings.Contains(l.layout, "04"):
			return t.Format(local), nil
		default:
			return t.Format(time.DateOnly), nil
		}
	}
	return "", fmt.Errorf("the text does not match the layout %s", l.text)
}

// local is the format of a time without a zone.
const local = "2006-01-02T15:04:05"

var wordPattern = regexp.MustCompile(`\pL[\pL\pM]+\.?`)

// toEnglish replaces names of months, or their first three letters, by the English ones.
func toEnglish(text string, short bool) string {
	return wordPattern.ReplaceAllStringFunc(text, func(word string) string {
		n := months.Number(strings.ToLower(strings.TrimSuffix(word, ".")))
		switch {
		case n == 0:
			return word
		case short:
			return time.Month(n).String()[:3]
		}
		return time.Month(n).String()
	})
}

// Formats of a date, and of a time after it.
var (
	timePattern = `(?:[T\s,]+(?:um |at |à )?(\d\d?):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?\s*((?i:[ap]m)?)\s*((?i:Z|UTC|GMT)|[+−-]\d\d:?\d\d|[+-]\d\d)?)?`
	yearFirst   = regexp.MustCompile(`^(\d{4})[-/.](\d\d?)[-/.](\d\d?)` + timePattern + `$`)
	eight       = regexp.MustCompile(`^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)?()(Z|[+-]\d{4})?)?$`)
	dayFirst    = regexp.MustCompile(`^(\d\d?)([-/.])\s?(\d\d?)[-/.]\s?(\d{4})` + timePattern + `$`)
	dayMonth    = regexp.MustCompile(
		`^(?:\pL+[,.]?\s+)?(\d\d?)(?:st|nd|rd|th|er|º|\.)?[\s-]+(?:de\s+|d[’'])?(\pL[\pL\pM]+)\.?,?[\s-]+(?:de\s+|del\s+)?(\d{4})` + timePattern + `$`,
	)
	monthDay = regexp.MustCompile(`^(?:\pL+[,.]?\s+)?(\pL[\pL\pM]+)\.?[\s-]+(\d\d?)(?:st|nd|rd|th)?,?[\s-]+(\d{4})` +
		timePattern + `$`)
	eastAsian    = regexp.MustCompile(`^(\d{4})\s*[年년]\s*(\d{1,2})\s*[月월]\s*(\d{1,2})\s*[日일]` + timePattern + `$`)
	yearMonth    = regexp.MustCompile(`^(\d{4})-(\d\d)$`)
	errNoDate    = errors.New("unknown date format: set format, such as %d.%m.%Y")
	errNoDay     = errors.New("no such day")
	errAmbiguous = errors.New("ambiguous day and month: set format to %d/%m/%Y or %m/%d/%Y")
)

// Date parses a date, and returns it in ISO 8601: as 2006-01-02 without a time, with a zone (RFC 3339) if the text has
// a time and a zone, and as 2006-01-02T15:04:05 if the zone is missing.
//
// It accepts ISO 8601, the dates of HTTP and mail, 17.5.2024, 17/5/2024 and 5/17/2024 if one of the numbers can only be
// a day, and days with a month's name in about thirty languages, optionally with a weekday before and a time after
// them. A month such as 2024-05 is returned unchanged.
func Date(text string) (string, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxDate {
		return "", errNoDate
	}
	lower := strings.ToLower(text)
	if m := yearMonth.FindStringSubmatch(text); m != nil && m[2] >= "01" && m[2] <= "12" {
		return text, nil
	}
	for _, form := range []*regexp.Regexp{yearFirst, eight, eastAsian} {
		if m := form.FindStringSubmatch(text); m != nil {
			return dateOf(m[1], m[2], m[3], m[4:])
		}
	}
	if m := dayFirst.FindStringSubmatch(text); m != nil {
		day, month := m[1], m[3]
		if m[2] != "." && number(month) <= 12 && number(day) <= 12 && number(day) != number(month) {
			return "", errAmbiguous
		}
		if number(month) > 12 && m[2] != "." {
			day, month = month, day
		}
		return dateOf(m[4], month, day, m[5:])
	}
	if m := dayMonth.FindStringSubmatch(lower); m != nil {
		if n := months.Number(m[2]); n > 0 {
			return dateOf(m[3], strconv.Itoa(n), m[1], m[4:])
		}
	}
	if m := monthDay.FindStringSubmatch(lower); m != nil {
		if n := months.Number(m[1]); n > 0 {
			return dateOf(m[3], strconv.Itoa(n), m[2], m[4:])
		}
	}
	return "", errNoDate
}

func number(digits string) int { n, _ := strconv.Atoi(digits); return n }

// dateOf assembles a date. clock is hour, minute, second, AM or PM, and zone, each "" if missing.
func dateOf(year, month, day string, clock []string) (string, error) {
	y, m, d := number(year), number(month), number(day)
	t := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC)
	if t.Year() != y || int(t.Month()) != m || t.Day() != d {
		return "", errNoDay
	}
	if len(clock) == 0 || clock[0] == "" {
		return t.Format(time.DateOnly), nil
	}
	hour, minute, second := number(clock[0]), number(clock[1]), number(clock[2])
	switch half := strings.ToLower(clock[3]); {
	case half == "pm" && hour < 12:
		hour += 12
	case half == "am" && hour == 12:
		hour = 0
	}
	if hour > 24 || minute > 59 || second > 60 {
		return "", errors.New("no such time of day")
	}
	zone, err := zoneOf(clock[4])
	if err != nil {
		return "", err
	}
	t = time.Date(y, time.Month(m), d, hour, minute, second, 0, zone)
	if clock[4] == "" {
		return t.Format(local), nil
	}
	return t.Format(time.RFC3339), nil
}

func zoneOf(text string) (*time.Location, error) {
	switch strings.ToUpper(text) {
	case "", "Z", "UTC", "GMT":
		return time.UTC, nil
	}
	sign, rest := 1, strings.TrimPrefix(text, "+")
	for _, minus := range []string{"-", "−"} {
		if after, is := strings.CutPrefix(text, minus); is {
			sign, rest = -1, after
		}
	}
	rest = strings.ReplaceAll(rest, ":", "")
	hours, minutes := number(rest[:min(2, len(rest))]), number(rest[min(2, len(rest)):])
	if hours > 15 || minutes > 59 {
		return nil, errors.New("no such time zone")
	}
	return time.FixedZone("", sign*(hours*3600+minutes*60)), nil
}
