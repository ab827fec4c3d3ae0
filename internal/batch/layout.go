package batch

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/batch/collection"
)

// Where things lie in a place, DIR being a collection's directory:
//
//	DIR/in/DATE/round-00/part-00000     URLs to be fetched: InURL
//	DIR/moved/DATE/round-00/part-00000  where seeds redirect to: Move
//	DIR/wait/DATE/round-00/…            those that the round has left for the next
//	DIR/doc/DATE/round-00/…             what the round fetched: Document; until the day is merged
//	DIR/doc/DATE/part-00000             the day's, each URL once
//	DIR/out/DATE/round-00/…             where that leads to: OutLinks
//	DIR/known/DATE/part-00000           what is known after the day: Known
//	DIR/xml/DATE/part-00000.xml         the day's pages in the collection's language, with counts.json,
//	                                    index.jsonl and sites.jsonl; the schema is in DIR/xml
//	DIR/other/DATE/part-00000.xml       those in others, with index.jsonl
//	DIR/fields/DATE/part-00000.jsonl    records of pages by the collection's rules, with report.json
//	DIR/tally/DATE/part-00000.jsonl     what those rules have found on each page, and missed
//	DIR/state/DATE.json                 how far the day is: State
//	DIR/state/DATE.settings.json        the collection as the day was run last
//	robots/DATE/…                       what robots.txt files answered: Rules
//	work/…                              output of a job that is not whole

// WorkFolder is the folder of a place where jobs write.
const WorkFolder = "work"

// DayFolder is a collection's folder of a day and a kind of record: "in", "doc", "out", "known", "xml", "other".
func DayFolder(c *collection.Collection, folder, date string) string {
	return path.Join(c.Directory, folder, date)
}

// RoundFolder is the same of a round.
func RoundFolder(c *collection.Collection, folder, date string, round int) string {
	return path.Join(DayFolder(c, folder, date), roundName(round))
}

const roundPrefix = "round-"

func roundName(round int) string { return fmt.Sprintf("%s%02d", roundPrefix, round) }

// CheckDate reports what is wrong with a date.
func CheckDate(date string) error {
	if t, err := time.Parse(dateFormat, date); err != nil || t.Format(dateFormat) != date {
		return fmt.Errorf("%q is no date: write 2026-11-21", date)
	}
	return nil
}

// Days are the days of which a collection has records of a kind, in order.
func Days(ctx context.Context, p place.Place, c *collection.Collection, folder string) (days []string, err error) {
	infos, err := p.List(ctx, path.Join(c.Directory, folder))
	for _, i := range infos {
		if i.IsDir && CheckDate(i.Name) == nil {
			days = append(days, i.Name)
		}
	}
	return days, err
}

// DayFiles are the files of a day's merged Documents, what is known, or XML: those of rounds are not among them.
func DayFiles(ctx context.Context, p place.Place, c *collection.Collection, folder, date string) (names []string,
	err error) {
	dir := DayFolder(c, folder, date)
	infos, err := p.List(ctx, dir)
	for _, i := range infos {
		if !i.IsDir && strings.HasPrefix(i.Name, "part-") {
			names = append(names, path.Join(dir, i.Name))
		}
	}
	return names, err
}

// knownFiles are the files with what was known before a day.
func knownFiles(ctx context.Context, p place.Place, c *collection.Collection, date string) ([]string, error) {
	last, err := knownDay(ctx, p, c, date)
	if err != nil || last == "" {
		return nil, err
	}
	return DayFiles(ctx, p, c, "known", last)
}

// knownDay is the last day before another one that has left what is known; "" if none has.
func knownDay(ctx context.Context, p place.Place, c *collection.Collection, date string) (last string, err error) {
	days, err := Days(ctx, p, c, "known")
	for _, d := range days {
		if d < date {
			last = d
		}
	}
	return last, err
}

// inputFiles are the files that a job of a collection reads.
func inputFiles(ctx context.Context, p place.Place, c *collection.Collection, s Step, date string) (names []string,
	err error) {
	var dirs []string
	known := false
	switch s.Job {
	case JobCrawl:
		dirs = append(dirs, RoundFolder(c, "in", date, s.Round))
		if known = s.Round == 0; !known {
			dirs = append(dirs, RoundFolder(c, WaitFolder, date, s.Round-1))
		}
	case JobParse:
		dirs = append(dirs, RoundFolder(c, "doc", date, s.Round))
	case JobOptimize:
		dirs, known = append(dirs, DayFolder(c, "out", date)), true
	case JobMerge:
		dirs, known = append(dirs, DayFolder(c, "doc", date)), true
	case JobXML:
		return DayFiles(ctx, p, c, "doc", date)
	}
	for _, dir := range dirs {
		some, err := ListFiles(ctx, p, dir)
		if err != nil {
			return nil, err
		}
		for _, name := range some { // of merge only those of rounds
			if s.Job != JobMerge || strings.HasPrefix(path.Base(path.Dir(name)), roundPrefix) {
				names = append(names, name)
			}
		}
	}
	if known {
		some, err := knownFiles(ctx, p, c, date)
		if err != nil {
			return nil, err
		}
		names = append(names, some...)
	}
	return names, nil
}

// targetFolder is where a job's output of a collection belongs: folder is where the job has put it.
func targetFolder(c *collection.Collection, s Step, date, folder string) string {
	switch {
	case s.Job == JobOptimize:
		return RoundFolder(c, folder, date, s.Round+1)
	case s.Job == JobMerge, s.Job == JobXML:
		return DayFolder(c, folder, date)
	}
	return RoundFolder(c, folder, date, s.Round)
}
