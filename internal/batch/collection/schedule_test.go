package collection

import (
	"testing"
	"time"
)

func TestASchedulesNextTime(t *testing.T) {
	const form = "Mon 2006-01-02 15:04:05"
	at := time.Date(2026, 11, 21, 3, 30, 0, 0, time.UTC) // a Saturday
	for text, want := range map[string]string{
		"daily":            "Sun 2026-11-22 00:00:00",
		"03:30":            "Sun 2026-11-22 03:30:00", // after, not at
		"3:31":             "Sat 2026-11-21 03:31:00",
		"30 3 * * mon-fri": "Mon 2026-11-23 03:30:00",
		"*/20 * * * *":     "Sat 2026-11-21 03:40:00",
		"0 0 29 2 *":       "Tue 2028-02-29 00:00:00",
	} {
		s, err := ParseSchedule(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		for _, zone := range []*time.Location{time.UTC, time.FixedZone("", 9*3600)} {
			if got := s.Next(at.In(zone)).Format(form); got != want {
				t.Errorf("%q comes %s, not %s", text, got, want)
			}
		}
	}
	if got := (Schedule{}).Next(at); !got.IsZero() {
		t.Errorf("no schedule comes %v", got)
	}
}

func FuzzParseSchedule(f *testing.F) {
	for _, text := range []string{"daily", "3:30", "TZ=0 * * * *", "CRON_TZ= 1 2 3 4", "*/0 * * * *", "1-0 * * * *",
		"@every 1s", "0 0 * * 7", ": ", "0/ * * * ?"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchedule(text)
		if now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC); err == nil && !s.Next(now).After(now) {
			t.Errorf("%q comes %v after %v", text, s.Next(now), now)
		}
	})
}
