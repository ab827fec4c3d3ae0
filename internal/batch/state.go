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

// A Step is one job of a day.
type Step struct {
	Round int    `json:"round"` // for merge and xml: the number of rounds
	Job   string `json:"job"`   // "" after the last
}

// jobOrder is the order of the jobs in a round, then after all rounds.
var jobOrder = []string{JobCrawl, JobParse, JobOptimize, JobMerge, JobXML, ""}

// compare orders steps: rounds first, then the final jobs. So collections in one run wait for each other before merge,
// and share the final jobs, too.
func (s Step) compare(o Step) int {
	ends := func(s Step) int { return max(slices.Index(jobOrder, s.Job)-slices.Index(jobOrder, JobMerge)+1, 0) }
	if c := cmp.Compare(ends(s), ends(o)); c != 0 || ends(s) > 0 {
		return c
	}
	return cmp.Or(cmp.Compare(s.Round, o.Round), cmp.Compare(slices.Index(jobOrder, s.Job), slices.Index(jobOrder, o.Job)))
}

// next returns the following step.
func (s Step) next() Step {
	if s.Job == JobOptimize {
		return Step{s.Round + 1, JobCrawl}
	}
	return Step{s.Round, jobOrder[slices.Index(jobOrder, s.Job)+1]}
}

// A State is the progress of a collection's day. It is stored in the storage location after each change.
type State struct {
	Version    int       `json:"version"`
	Collection string    `json:"collection"`
	Date       string    `json:"date"`
	Next       Step      `json:"next"`           // next job; its Job is "" when the day is done
	Work       string    `json:"work,omitempty"` // folder of the output of Next, if it was started
	Began      time.Time `json:"began"`          // start of the day
	Ended      time.Time `json:"ended,omitzero"` // end of the day
	Done       []Done    `json:"done,omitempty"` // completed jobs, in order
	Cut        string    `json:"cut,omitempty"`  // why rounds were ended although URLs were left; "" if none were
	// Nothing is why nothing could be fetched; "" if something was. The next run starts such a day again.
	Nothing string `json:"nothing,omitempty"`
	// Moved maps seeds to their redirect targets, of this day or earlier.
	Moved map[string]string `json:"moved,omitempty"`
}

// A Done is a completed job.
type Done struct {
	Step
	Began    time.Time        `json:"began"`
	Seconds  float64          `json:"seconds"`
	Inputs   int              `json:"inputs"`             // number of files
	Failed   int              `json:"failed,omitempty"`   // failed attempts of tasks
	Counters map[string]int64 `json:"counters,omitempty"` // of this collection
	Together map[string]int64 `json:"together,omitempty"` // of the whole job, with all collections that shared it
}

// refusedPrefix begins the names of counters of refused links.
const refusedPrefix = "refused: "

// NotFollowed is the key under which RefusedLinks counts nofollow links.
const NotFollowed = "nofollow"

// RefusedLinks returns the numbers of refused links, by rule. Their URLs have no Document.
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

// Count returns a counter of the collection, summed over the day's jobs.
func (s *State) Count(name string) (n int64) {
	for i := range s.Done {
		n += s.Done[i].Counters[name]
	}
	return n
}

// IsDone reports whether the day is done.
func (s *State) IsDone() bool { return s.Next.Job == "" && s.Nothing == "" }

// IdleShare returns the share of time, 0 to 1, in which threads waited because politeness allowed no request. It covers
// all crawl jobs of the day that the collection took part in.
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

// ReadState reads the state of a collection's day; nil if the day was not started.
func ReadState(ctx context.Context, p place.Place, c *collection.Collection, date string) (*State, error) {
	name, s := stateName(c, date), &State{}
	err := ReadJSON(ctx, p, name, s)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, ErrDamaged):
		return nil, advice.With(err, "restore the file from a backup, or remove it: then the next run starts the day "+
			"again")
	case err != nil:
		return nil, err
	}
	if s.Version != stateVersion {
		return nil, fmt.Errorf("%s: %w", name, ErrVersion)
	}
	if s.Collection != c.Code {
		return nil, fmt.Errorf("%s belongs to collection %s, not to %s: use different directories for the collections",
			name, s.Collection, c.Code)
	}
	return s, nil
}

func (s *State) write(ctx context.Context, p place.Place, c *collection.Collection) error {
	return writeJSON(ctx, p, stateName(c, s.Date), s)
}
