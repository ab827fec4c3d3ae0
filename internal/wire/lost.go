package wire

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"kumo/internal/store/crawllog"
	"kumo/internal/store/jsonl"
)

// countLost counts the visits that a repair does not keep, whatever the cause: those that crawl.log or pages.jsonl listed before and do not
// list now, those of robots.txt and those that failed among them, and those that only had records. records has, by URL, how many visits
// were taken out of WARC files.
func countLost(before, after string, records map[string]int64) (int64, error) {
	type losses struct{ log, pages, records int32 }
	byURL := map[uint64]losses{}
	taken := int64(0)
	for url, n := range records {
		l := byURL[key(url)]
		l.records += int32(n)
		byURL[key(url)] = l
		taken += n
	}
	var log, pages int64 // lines that are gone, those that cannot be read among them
	for _, side := range []struct {
		dir string
		n   int32
	}{{before, 1}, {after, -1}} {
		err := eachLineOf(filepath.Join(side.dir, "crawl.log"), func(line []byte) {
			log += int64(side.n)
			if e, err := crawllog.Parse(line); err == nil {
				l := byURL[key(e.URL)]
				l.log += side.n
				byURL[key(e.URL)] = l
			}
		})
		err = errors.Join(err, eachLineOf(filepath.Join(side.dir, "pages.jsonl"), func(line []byte) {
			pages += int64(side.n)
			if p, err := jsonl.ParsePage(line); err == nil {
				l := byURL[key(p.URL)]
				l.pages += side.n
				byURL[key(p.URL)] = l
			}
		}))
		if err != nil {
			return 0, err
		}
	}
	if log <= 0 && pages <= 0 && taken == 0 {
		return 0, nil // a line that named another URL by mistake was made anew
	}
	lost := int64(0)
	for _, l := range byURL {
		lost += int64(max(l.log, l.pages, l.records, 0))
	}
	return max(lost, log, pages), nil
}

// eachLineOf calls f with the whole lines of a file, if it is there.
func eachLineOf(name string, f func(line []byte)) error {
	src, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer src.Close()
	in := bufio.NewReaderSize(src, 256<<10)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f(line[:len(line)-1])
	}
}
