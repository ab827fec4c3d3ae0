package progress

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"kumo/internal/batch/collection"
	"kumo/internal/batch/collection/schedule"
)

// Scheduled returns what a scheduler reports runs to: they are logged.
func (s *Batch) Scheduled() schedule.Listener {
	return schedule.Listener{
		Sleeps: func(until time.Time, group []*collection.Collection) {
			s.say("nothing to do", "until", until.Format(time.RFC3339), "then", shortly(group))
		},
		Missed: func(c *collection.Collection, due time.Time, times int, why string) {
			s.log(slog.LevelWarn, "missed", "collection", c.Code, "times", times, "last", due.Format(time.RFC3339), "why", why)
		},
		Began: func(day string, group []*collection.Collection, late time.Duration) {
			args := []any{"day", day, "collections", collection.Codes(group)}
			if late > 0 {
				args = append(args, "late", late.Round(time.Second).String())
			}
			s.say("run", args...)
		},
		Ended: func(day string, group []*collection.Collection, took time.Duration, err error) {
			args := []any{"day", day, "collections", collection.Codes(group), "took", took.Round(time.Second).String()}
			switch {
			case err == nil:
				s.say("run ended", args...)
			case errors.Is(err, context.Canceled):
				s.say("run interrupted: it goes on at the next start", args...)
			default:
				s.log(slog.LevelError, "run failed: it goes on at the next run of that day, or the next start",
					append(args, "error", err)...)
			}
		},
	}
}
