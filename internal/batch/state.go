package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/base/advice"
	"kumo/internal/batch/collection"
)

// A Step is a job of a day.
type Step struct {
	Round int    `json:"round"` // of merge and xml: the number of rounds
	Job   string `json:"job"`   // "" behind the last
}

// jobOrder is that of the jobs of a round, and behind all rounds.
var jobOrder = []string{JobCrawl, JobParse, JobOptimize, JobMerge, JobXML, ""}

// compare orders steps: rounds first, then what ends the day. So collections that are run together wait for each other
// before they are merged, and share these jobs, too.
func (s Step) compare(o Step) int {
	ends := func(s Step) int { return max(slices.Index(jobOrder, s.Job)-slices.Index(jobOrder, JobMerge)+1, 0) }
	if c := cmp.Compare(ends(s), ends(o)); c != 0 || ends(s) > 0 {
		return c
	}
	return cmp.Or(cmp.Compare(s.Round, o.Round), cmp.Compare(slices.Index(jobOrder, s.Job), slices.Index(jobOrder, o.Job)))
}

// next is the step that follows.
func (s Step) next() Step {
	if s.Job == JobOptimize {
		return Step{s.Round + 1, JobCrawl}
	}
	return Step{s.Round, jobOrder[slices.Index(jobOrder, s.Job)+1]}
}

// A State is how far a collection is with a day. It lies in the place and is written whenever that changes.
type State struct {
	Version    int       `json:"version"`
	Collection string    `json:"collection"`
	Date       string    `json:"date"`
	Next       Step      `json:"next"`           // to be done; its Job is "" when the day is
	Work       string    `json:"work,omitempty"` // folder of the output of Next, if that was begun
	Began      time.Time `json:"began"`          // the day
	Ended      time.Time `json:"ended,omitzero"` // likewise
	Done       []Done    `json:"done,omitempty"` // jobs, in order
	Cut        string    `json:"cut,omitempty"`  // why rounds ended though URLs were left; "" if none were
	// Nothing says why nothing could be fetched; "" if something was. The next run begins such a day again.
	Nothing string `json:"nothing,omitempty"`
	// RedirectTo are, by their URLs, where seeds redirect to, that day or before.
	Moved map[string]string `json:"moved,omitempty"`
}

// A Done is a job that was done.
type Done struct {
	Step
	Began    time.Time        `json:"began"`
	Seconds  float64          `json:"seconds"`
	Inputs   int              `json:"inputs"`             // files
	Failed   int              `json:"failed,omitempty"`   // attempts of tasks
	Counters map[string]int64 `json:"counters,omitempty"` // the collection's
	Together map[string]int64 `json:"together,omitempty"` // of the job, with all collections that shared it
}

// refusedPrefix begins the name of a counter of URLs that a rule has refused.
const refusedPrefix = "refused: "

// NotFollowed is the key under which RefusedLinks counts links that their pages ask robots not to follow.
const NotFollowed = "nofollow"

// RefusedLinks counts, by rule, links that rules have refused where they were found. Their URLs have no Document.
func (s *State) RefusedLinks() map[string]int64 {
	refused := map[string]int64{}
	for i := range s.Done {
		if s.Done[i].Job != JobParse {
			continue
		}
		for name, n := range s.Done[i].Counters {
			if rule, is := strings.CutPrefix(name, refusedPrefix); is {
				refused[rule] += n
			} else if name == NotFollowed && n > 0 {
				refused[name] += n
			}
		}
	}
	return refused
}

// Count is a counter of the collection, summed over the day's jobs.
func (s *State) Count(name string) (n int64) {
	for i := range s.Done {
		n += s.Done[i].Counters[name]
	}
	return n
}

// IsDone reports whether all of the day is done.
func (s *State) IsDone() bool { return s.Next.Job == "" && s.Nothing == "" }

// IdleShare is how much of the time of the threads that fetched politeness let them ask no host, in all crawl jobs of
// the day that the collection had a part in: 0 to 1.
func (s *State) IdleShare() float64 {
	var idle, all int64
	for i := range s.Done {
		idle, all = idle+s.Done[i].Together[CounterIdleTime], all+s.Done[i].Together[CounterThreadTime]
	}
	return float64(idle) / float64(max(all, 1))
}

const stateVersion = 1

func stateName(c *collection.Collection, date string) string {
	return path.Join(c.Directory, "state", date+".json")
}

// ReadState reads how far a collection is with a day; nil if the day was not begun.
func ReadState(ctx context.Context, p place.Place, c *collection.Collection, date string) (*State, error) {
	name, s := stateName(c, date), &State{}
	err := ReadJSON(ctx, p, name, s)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, ErrDamaged):
		return nil, advice.With(err, "put back a copy of the file, or remove it: then the day is begun again when it is run")
	case err != nil:
		return nil, err
	}
	if s.Version != stateVersion {
		return nil, fmt.Errorf("%s: %w", name, ErrVersion)
	}
	if s.Collection != c.Code {
		return nil, fmt.Errorf("%s is of collection %s, not of %s: two collections need two directories", name, s.Collection,
			c.Code)
	}
	return s, nil
}

func (s *State) write(ctx context.Context, p place.Place, c *collection.Collection) error {
	return writeJSON(ctx, p, stateName(c, s.Date), s)
}
