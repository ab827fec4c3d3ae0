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

// RobotsAnswersName is the name of the file in the crawl's folder that says what robots.txt files said: a line of JSON
// for each that was had, an [Answer]. The record with the whole of it is in the WARC; here is what explains why a URL
// was left out when the rules are no longer in memory, and the WARC may be elsewhere.
var RobotsAnswersName = filepath.Join("state", "robots.jsonl")

// A RobotsAnswer is what an origin's robots.txt said.
type RobotsAnswer struct {
	Origin string        `json:"origin"` // first, so that lines are found by it
	URL    string        `json:"url"`    // that answered, after redirects
	Time   time.Time     `json:"time"`
	Status int           `json:"status"`
	Lines  []robots.Line `json:"lines"` // that are meant for this crawler
}

// Rules are the rules that the answer makes.
func (a *RobotsAnswer) Rules() *robots.Rules {
	if a.Status < 200 || a.Status > 299 {
		return robots.FromStatus(a.Status, nil, "")
	}
	return robots.FromLines(a.Lines)
}

// RobotsAnswers is the file of them. It is a store like others, so that it agrees with the journal after a crash.
type RobotsAnswers struct{ *store.Logs }

var _ store.Store = (*RobotsAnswers)(nil)

// OpenRobotsAnswers opens the file of the crawl in dir, cut back to marks.
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

// Put does nothing: a record has all that was answered, and no rules.
func (a *RobotsAnswers) Put(*page.Record) error { return nil }

// PutSkip does nothing.
func (a *RobotsAnswers) PutSkip(*page.Skip) error { return nil }

// Add keeps an answer.
func (a *RobotsAnswers) Add(answer *RobotsAnswer) error {
	line, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("keep the rules of %s: %w", answer.Origin, err)
	}
	return a.Append(0, append(line, '\n'))
}
