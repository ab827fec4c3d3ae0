package statefile

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/content/robots"
	"kumo/internal/state/store"
)

// RobotsAnswersName is the path in the crawl's folder of the file with robots.txt rules: a [RobotsAnswer] as JSON per
// line, for each robots.txt that was fetched. The WARC has the complete record. This file explains why a URL was
// excluded when the rules are no longer in memory, and the WARC may be elsewhere.
var RobotsAnswersName = filepath.Join("state", "robots.jsonl")

// A RobotsAnswer is the content of an origin's robots.txt.
type RobotsAnswer struct {
	Origin string        `json:"origin"` // first, so that lines can be found by it
	URL    string        `json:"url"`    // final URL after redirects
	Time   time.Time     `json:"time"`
	Status int           `json:"status"`
	Lines  []robots.Line `json:"lines"` // that apply to this crawler
}

// Rules returns the rules of the robots.txt.
func (a *RobotsAnswer) Rules() *robots.Rules {
	if a.Status < 200 || a.Status > 299 {
		return robots.FromStatus(a.Status, nil, "")
	}
	return robots.FromLines(a.Lines)
}

// RobotsAnswers is the file of robots.txt rules. It is a store, so that it agrees with the journal after a crash.
type RobotsAnswers struct{ *store.Logs }

var _ store.Store = (*RobotsAnswers)(nil)

// OpenRobotsAnswers opens the file of the crawl in dir, truncated to marks.
func OpenRobotsAnswers(disk vfs.FS, dir string, marks []store.Mark) (*RobotsAnswers, error) {
	if err := disk.MkdirAll(filepath.Join(dir, "state")); err != nil {
		return nil, err
	}
	logs, err := store.OpenLogs(disk, dir, marks, RobotsAnswersName)
	if err != nil {
		return nil, err
	}
	return &RobotsAnswers{logs}, nil
}

// Put does nothing: a record has no parsed rules.
func (a *RobotsAnswers) Put(*page.Record) error { return nil }

// PutSkip does nothing.
func (a *RobotsAnswers) PutSkip(*page.Skip) error { return nil }

// Add stores an answer.
func (a *RobotsAnswers) Add(answer *RobotsAnswer) error {
	line, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("store the robots.txt rules of %s: %w", answer.Origin, err)
	}
	return a.Append(0, append(line, '\n'))
}
