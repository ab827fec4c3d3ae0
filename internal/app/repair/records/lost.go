package records

import (
	"errors"
	"path/filepath"

	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
	"kumo/internal/state/store/crawllog"
	"kumo/internal/state/store/jsonl"
)

// Lost counts the visits that a repair does not keep, whatever the cause: those listed in crawl.log or pages.jsonl
// before but not now, including those of robots.txt and failed ones, and those that only had records. records has the
// number of visits removed from WARC files, by URL.
func Lost(before, after string, records map[string]int64) (int64, error) {
	type losses struct{ log, pages, records int32 }
	byURL := map[uint64]losses{}
	taken := int64(0)
	for url, n := range records {
		l := byURL[Key(url)]
		l.records += int32(n)
		byURL[Key(url)] = l
		taken += n
	}
	var log, pages int64 // lost lines, including unreadable ones
	for _, side := range []struct {
		dir string
		n   int32
	}{{before, 1}, {after, -1}} {
		_, logErr := store.EachLineOf(vfs.OS, filepath.Join(side.dir, "crawl.log"), func(line []byte, _ int64) error {
			log += int64(side.n)
			if e, err := crawllog.Parse(line); err == nil {
				l := byURL[Key(e.URL)]
				l.log += side.n
				byURL[Key(e.URL)] = l
			}
			return nil
		})
		_, pagesErr := store.EachLineOf(vfs.OS, filepath.Join(side.dir, "pages.jsonl"), func(line []byte, _ int64) error {
			pages += int64(side.n)
			if p, err := jsonl.ParsePage(line); err == nil {
				l := byURL[Key(p.URL)]
				l.pages += side.n
				byURL[Key(p.URL)] = l
			}
			return nil
		})
		if err := errors.Join(logErr, pagesErr); err != nil {
			return 0, err
		}
	}
	if log <= 0 && pages <= 0 && taken == 0 {
		return 0, nil // a line with a wrong URL was rebuilt
	}
	lost := int64(0)
	for _, l := range byURL {
		lost += int64(max(l.log, l.pages, l.records, 0))
	}
	return max(lost, log, pages), nil
}
