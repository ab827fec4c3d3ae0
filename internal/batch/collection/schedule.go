package collection

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// A Schedule defines when a collection is run, in UTC.
type Schedule struct{ cron cron.Schedule }

// ParseSchedule parses a schedule: "daily" (at midnight), a time of day ("03:30": daily at that time), or a cron
// expression of five fields, minute, hour, day of the month, month and day of the week ("30 3 * * mon-fri").
func ParseSchedule(text string) (Schedule, error) {
	fields := strings.Fields(text)
	switch {
	case len(fields) == 1 && fields[0] == "daily":
		fields = []string{"0 0 * * *"}
	case len(fields) == 1 && strings.Contains(text, ":"):
		at, err := time.Parse("15:04", fields[0])
		if err != nil {
			return Schedule{}, fmt.Errorf("%q is not a time of day: expected 00:00 to 23:59", text)
		}
		fields = []string{fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour())}
	case len(fields) != 5 || strings.Contains(fields[0], "="): // the library would accept time zones
		return Schedule{}, fmt.Errorf("%q is not a schedule: expected \"daily\", a time of day as in \"03:30\", or a "+
			"cron expression of five fields as in \"30 3 * * mon-fri\"", text)
	}
	s, err := cron.ParseStandard(strings.Join(fields, " "))
	if err != nil {
		return Schedule{}, fmt.Errorf("%q is not a cron expression (minute, hour, day of the month, month, day of "+
			"the week): %w",
			text, err)
	}
	if s.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Schedule{}, fmt.Errorf("%q never occurs: there is no such day", text)
	}
	return Schedule{s}, nil
}

// Next returns the first due time after a time; the zero time for the zero Schedule.
func (s Schedule) Next(after time.Time) time.Time {
	if s.cron == nil {
		return time.Time{}
	}
	return s.cron.Next(after.UTC())
}
