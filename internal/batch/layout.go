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

// Files in a storage location; DIR is a collection's directory:
//
//	DIR/in/DATE/round-00/part-00000     URLs to fetch: InURL
//	DIR/moved/DATE/round-00/part-00000  redirects of seeds: Move
//	DIR/wait/DATE/round-00/…            URLs deferred to the next round
//	DIR/doc/DATE/round-00/…             results of the round: Document; until the day is merged
//	DIR/doc/DATE/part-00000             results of the day, one per URL
//	DIR/out/DATE/round-00/…             their links: OutLinks
//	DIR/known/DATE/part-00000           state of all URLs after the day: Known
//	DIR/xml/DATE/part-00000.xml         the day's pages in the collection's language, with counts.json,
//	                                    index.jsonl and sites.jsonl; the schema is in DIR/xml
//	DIR/other/DATE/part-00000.xml       pages in other languages, with index.jsonl
//	DIR/fields/DATE/part-00000.jsonl    records extracted by the collection's rules, with report.json
//	DIR/tally/DATE/part-00000.jsonl     fields that the rules found and missed on each page
//	DIR/state/DATE.json                 progress of the day: State
//	DIR/state/DATE.settings.json        the collection in the day's last run
//	robots/DATE/…                       robots.txt answers: RobotsRecord
//	work/…                              unfinished output of jobs

// WorkFolder is the folder in a storage location to which jobs write.
const WorkFolder = "work"

// DayFolder returns a collection's folder of a day and a kind of record: "in", "doc", "out", "known", "xml", "other".
func DayFolder(c *collection.Collection, folder, date string) string {
	return path.Join(c.Directory, folder, date)
}

// RoundFolder returns the folder of a round in a DayFolder.
func RoundFolder(c *collection.Collection, folder, date string, round int) string {
	return path.Join(DayFolder(c, folder, date), roundName(round))
}

const roundPrefix = "round-"

func roundName(round int) string { return fmt.Sprintf("%s%02d", roundPrefix, round) }

// CheckDate checks the form of a date.
func CheckDate(date string) error {
	if t, err := time.Parse(dateFormat, date); err != nil || t.Format(dateFormat) != date {
		return fmt.Errorf("%q is not a date: write 2026-11-21", date)
	}
	return nil
}

// Days returns the days for which a collection has records of a kind, sorted.
func Days(ctx context.Context, p place.Place, c *collection.Collection, folder string) (days []string, err error) {
	infos, err := p.List(ctx, path.Join(c.Directory, folder))
	for _, i := range infos {
		if i.IsDir && CheckDate(i.Name) == nil {
			days = append(days, i.Name)
		}
	}
	return days, err
}

// DayFiles returns the files of a day's merged Documents, known URLs or XML, without the files of rounds.
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

// knownFiles returns the files with the known URLs before a day.
func knownFiles(ctx context.Context, p place.Place, c *collection.Collection, date string) ([]string, error) {
	last, err := knownDay(ctx, p, c, date)
	if err != nil || last == "" {
		return nil, err
	}
	return DayFiles(ctx, p, c, "known", last)
}

// knownDay returns the last day before a date that has known URLs; "" if none has.
func knownDay(ctx context.Context, p place.Place, c *collection.Collection, date string) (last string, err error) {
	days, err := Days(ctx, p, c, "known")
	for _, d := range days {
		if d < date {
			last = d
		}
	}
	return last, err
}

// inputFiles returns the files that a job of a collection reads.
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
		for _, name := range some { // merge reads only files of rounds
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

// targetFolder returns the final folder of a job's output, by the folder to which the job wrote it.
func targetFolder(c *collection.Collection, s Step, date, folder string) string {
	switch {
	case s.Job == JobOptimize:
		return RoundFolder(c, folder, date, s.Round+1)
	case s.Job == JobMerge, s.Job == JobXML:
		return DayFolder(c, folder, date)
	}
	return RoundFolder(c, folder, date, s.Round)
}
