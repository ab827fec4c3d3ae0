package filter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"kumo/internal/base/advice"
	"kumo/internal/base/stats"
)

// An Account has a filter's counters and log, and decides on questions that the filter does not answer.
type Account struct {
	name     string
	fallback Default
	log      *limiter

	mu     sync.Mutex // guards counts
	counts stats.FilterCounts
}

// NewAccount returns the account of a new filter.
func NewAccount(cfg *Config) *Account {
	a := &Account{name: cmp.Or(cfg.Name, Plain(cfg.Command, maxName)), fallback: cfg.Default, log: newLimiter(cfg.Log)}
	if a.fallback == "" {
		a.fallback = Stop
	}
	a.counts = stats.FilterCounts{Filter: a.name, Points: map[string]*stats.FilterPoint{}}
	return a
}

const maxName = 100 // bytes of a command that is used as a name

// Names returns the names of several filters, given their commands: if commands are equal, all but the first get a
// number.
func Names(commands []string) (names []string) {
	for _, command := range commands {
		name := Plain(command, maxName)
		for n, base := 2, name; slices.Contains(names, name); n++ {
			name = fmt.Sprintf("%s #%d", base, n)
		}
		names = append(names, name)
	}
	return names
}

// Name returns the filter's name, as used in reasons and reports.
func (a *Account) Name() string { return a.name }

// Say logs a line that the filter has printed.
func (a *Account) Say(line string) { a.say("says: " + line) }

func (a *Account) say(what string) { a.log.say("filter " + a.name + " " + what) }

// An UnansweredError is returned for a question that a filter has not answered.
type UnansweredError struct {
	filter, point, url, asked string
	Why                       error
}

func (e *UnansweredError) Error() string {
	return fmt.Sprintf("filter %s has not answered for %s %s%s: %v", e.filter, e.point, e.url, e.asked, e.Why)
}

// Unwrap returns the cause.
func (e *UnansweredError) Unwrap() error { return e.Why }

// Unanswered returns the result of a question without an answer: the default, or the error that ends the crawl. asked
// describes how the question was asked.
func (a *Account) Unanswered(q *Question, asked string, why error) (Answer, error) {
	a.mu.Lock()
	a.point(q.Point).Unanswered++
	a.mu.Unlock()
	err := &UnansweredError{a.name, q.Point, Plain(q.URL, MaxReason), asked, why}
	switch a.fallback {
	case Keep:
		a.log.say(err.Error() + " (kept)")
		return Answer{}, nil
	case Drop:
		a.log.say(err.Error() + " (dropped)")
		return Answer{Drop: Plain("no answer: "+why.Error(), MaxReason)}, nil
	}
	return Answer{}, advice.With(err, remedy(why)+"kumo check filter COMMAND URL shows its answers. Nothing is lost: "+
		"the same command resumes the crawl. To continue without these answers: --filter-default keep, or drop")
}

// remedy returns advice for a filter that fails in a common way.
func remedy(why error) string {
	switch {
	case errors.Is(why, errNotJSON):
		return "the program must write only answers to standard output; messages for people go to standard error. "
	case errors.Is(why, errTimeout):
		return "the program must flush each line that it writes; for a slow one, set --filter-timeout. "
	}
	return ""
}

func (a *Account) point(name string) *stats.FilterPoint {
	p := a.counts.Points[name]
	if p == nil {
		p = &stats.FilterPoint{}
		a.counts.Points[name] = p
	}
	return p
}

// CountAnswer counts an answer, including default answers.
func (a *Account) CountAnswer(point string, answer *Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.point(point)
	p.Asked++
	if answer.Drop != "" {
		p.Dropped++
	} else if answer.Changes() {
		p.Changed++
	}
}

// CountFailure counts a failure of the filter.
func (a *Account) CountFailure(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case errors.Is(err, errTimeout):
		a.counts.Late++
	case errors.Is(err, ErrInvalidAnswer):
		a.counts.Nonsense++
	default:
		a.counts.Crashed++
	}
	a.counts.Trouble = Plain(err.Error(), MaxReason)
}

// Counts returns the counts of this run, and of the earlier ones passed to Resume.
func (a *Account) Counts() stats.FilterCounts {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts.Clone()
}

// Resume adds the counts of earlier runs.
func (a *Account) Resume(was stats.FilterCounts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts.Add(was)
}

// FlushLog logs how many lines were dropped.
func (a *Account) FlushLog() { a.log.close() }
