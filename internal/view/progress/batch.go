package progress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/term"

	"kumo/internal/base/stats"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
	"kumo/internal/batch/collection/schedule"
)

// A Batch displays the progress of a batch crawl.
type Batch struct {
	Log   *slog.Logger
	live  io.Writer // terminal; nil if there is none
	lines chan func()
	ended chan struct{}
	last  time.Time
}

// NewBatch displays progress on stderr; on a terminal that supports it, in a line that is overwritten. Only one
// goroutine writes, but any goroutine may report progress.
func NewBatch(stderr *os.File, draws, quiet bool) *Batch {
	s := &Batch{lines: make(chan func(), 100), ended: make(chan struct{})}
	level := slog.LevelInfo
	if quiet {
		level = slog.LevelError
	}
	s.Log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	if draws && !quiet {
		s.live = stderr
	}
	go func() {
		defer close(s.ended)
		for f := range s.lines {
			f()
		}
	}()
	return s
}

// End waits until all output is written.
func (s *Batch) End() {
	close(s.lines)
	<-s.ended
	s.clear()
}

// width returns the usable columns of the terminal.
func (s *Batch) width() int {
	if f, is := s.live.(*os.File); is {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 1 {
			return columns - 1
		}
	}
	return 79
}

func (s *Batch) clear() {
	if s.live != nil {
		fmt.Fprint(s.live, "\r\x1b[K")
	}
}

// info logs a line.
func (s *Batch) info(text string, args ...any) { s.log(slog.LevelInfo, text, args...) }

func (s *Batch) log(level slog.Level, text string, args ...any) {
	s.lines <- func() { s.clear(); s.Log.Log(context.Background(), level, text, args...) }
}

// batchLogInterval is the interval of log lines without a terminal.
const batchLogInterval = 30 * time.Second

func (s *Batch) progress(j *batch.JobInfo, p batch.Progress) {
	f := func() {
		if s.live == nil {
			if now := time.Now(); now.Sub(s.last) >= batchLogInterval {
				s.last = now
				s.Log.Info(j.Job, "round", j.Round, "maps", fmt.Sprintf("%d/%d", p.MapsDone, p.Maps), "reduces",
					fmt.Sprintf("%d/%d", p.ReducesDone, p.Reduces), "status", p.Status)
			}
			return
		}
		line := fmt.Sprintf("round %d: %s of %s  maps %d/%d", j.Round, j.Job, shortList(j.Collections), p.MapsDone, p.Maps)
		if p.Reduces > 0 {
			line += fmt.Sprintf("  reduces %d/%d", p.ReducesDone, p.Reduces)
		}
		if p.Status != "" {
			line += "  " + p.Status
		}
		fmt.Fprintf(s.live, "\r\x1b[K%.*s", s.width(), line)
	}
	select {
	case s.lines <- f:
	default: // the terminal is slow; a later line replaces this one
	}
}

func shortList(group []*collection.Collection) string {
	if len(group) > 3 {
		return stats.Count(len(group), "collections")
	}
	return collection.Codes(group)
}

// Listener returns a listener for a pipeline's events.
func (s *Batch) Listener() batch.Listener {
	return batch.Listener{
		Resumed: func(c *collection.Collection, st *batch.State) {
			if st.Next.Job == "" {
				s.info("already done", "collection", c.Code, "day", st.Date, "ended", st.Ended.Format(time.RFC3339))
				return
			}
			s.info("going on", "collection", c.Code, "day", st.Date, "round", st.Next.Round, "job", st.Next.Job)
		},
		JobStarted: func(j *batch.JobInfo) {
			if s.live == nil {
				s.info("job", "round", j.Round, "job", j.Job, "collections", collection.Codes(j.Collections), "files", j.Inputs)
			}
		},
		Progress: s.progress,
		JobEnded: func(j *batch.JobInfo, r *batch.Result, took time.Duration) {
			args := []any{"round", j.Round, "job", j.Job, "took", took.Round(time.Millisecond).String()}
			if r.Failed > 0 {
				args = append(args, "failed_attempts", r.Failed)
			}
			if all := r.Counters.Get(batch.JobCrawl, batch.CounterThreadTime); all > 0 {
				args = append(args, "requests", r.Counters.Get(batch.JobCrawl, "requests"), "idle_share",
					fmt.Sprintf("%.0f%%", 100*float64(r.Counters.Get(batch.JobCrawl, batch.CounterIdleTime))/float64(all)))
			}
			if j.Job == batch.JobOptimize {
				n := int64(0)
				for _, c := range j.Collections {
					n += r.Counters.Get(c.Code, "new")
				}
				args = append(args, "new_urls", n)
			}
			s.info("done", args...)
		},
		Ended: func(c *collection.Collection, st *batch.State) {
			s.info("day done", "collection", c.Code, "day", st.Date, "fetched", st.Count("pages"), "pages", st.Count("kept"))
		},
		Moved: func(c *collection.Collection, m *batch.Move) {
			if m.To != "" {
				s.info("a seed redirects: its target is in scope", "collection", c.Code, "seed", m.URL, "to", m.To)
			}
		},
		RoundsCut: func(c *collection.Collection, st *batch.State) {
			s.log(slog.LevelWarn, "rounds ended although URLs are left: more rounds than depth and redirects permit",
				"collection",
				c.Code, "rounds", st.Cut)
		},
	}
}

// ScheduleListener returns a listener that logs a scheduler's events.
func (s *Batch) ScheduleListener() schedule.Listener {
	return schedule.Listener{
		Idle: func(until time.Time, group []*collection.Collection) {
			s.info("nothing to do", "until", until.Format(time.RFC3339), "then", shortList(group))
		},
		Missed: func(c *collection.Collection, due time.Time, times int, why string) {
			s.log(slog.LevelWarn, "missed", "collection", c.Code, "times", times, "last", due.Format(time.RFC3339),
				"why", why)
		},
		Started: func(day string, group []*collection.Collection, late time.Duration) {
			args := []any{"day", day, "collections", collection.Codes(group)}
			if late > 0 {
				args = append(args, "late", late.Round(time.Second).String())
			}
			s.info("run", args...)
		},
		Ended: func(day string, group []*collection.Collection, took time.Duration, err error) {
			args := []any{"day", day, "collections", collection.Codes(group), "took", took.Round(time.Second).String()}
			switch {
			case err == nil:
				s.info("run ended", args...)
			case errors.Is(err, context.Canceled):
				s.info("run interrupted: the next start resumes it", args...)
			default:
				s.log(slog.LevelError, "run failed: the next run of that day, or the next start, resumes it",
					append(args, "error", err)...)
			}
		},
	}
}
