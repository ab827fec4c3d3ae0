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

// An Account is what is said and counted of a filter, and what it does not answer for.
type Account struct {
	name     string
	fallback Default
	log      *limiter

	mu     sync.Mutex // guards counts
	counts stats.FilterCounts
}

// NewAccount is that of a filter which begins.
func NewAccount(cfg *Config) *Account {
	a := &Account{name: cmp.Or(cfg.Name, Plain(cfg.Command, maxName)), fallback: cfg.Default, log: newLimiter(cfg.Log)}
	if a.fallback == "" {
		a.fallback = Stop
	}
	a.counts = stats.FilterCounts{Filter: a.name, Points: map[string]*stats.FilterPoint{}}
	return a
}

const maxName = 100 // bytes of a command, where it is a name

// Names are those of several filters by their commands: of equal ones all but the first have a number.
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

// Name is the filter's, as reasons and reports have it.
func (a *Account) Name() string { return a.name }

// Say passes on what the filter says.
func (a *Account) Say(line string) { a.say("says: " + line) }

func (a *Account) say(what string) { a.log.say("filter " + a.name + " " + what) }

// An UnansweredError is a question that a filter has not answered.
type UnansweredError struct {
	filter, point, url, asked string
	Why                       error
}

func (e *UnansweredError) Error() string {
	return fmt.Sprintf("filter %s has not answered for %s %s%s: %v", e.filter, e.point, e.url, e.asked, e.Why)
}

// Unwrap returns the reason.
func (e *UnansweredError) Unwrap() error { return e.Why }

// Unanswered is the answer to a question for which there is none: the default, or the error that ends the crawl. How it
// was asked stands behind the question.
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
	return Answer{}, advice.With(err, remedy(why)+"kumo check filter COMMAND URL shows what it answers. Nothing is lost: "+
		"the same command resumes the crawl. To go on without these answers: --filter-default keep, or drop")
}

// remedy is advice on how to mend a filter that fails in a common way.
func remedy(why error) string {
	switch {
	case errors.Is(why, errNotJSON):
		return "a program writes nothing but answers to standard output; what is for people goes to standard error. "
	case errors.Is(why, errTimeout):
		return "a program flushes each line that it writes; for a slow one there is --filter-timeout. "
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

// CountAnswer counts an answer, the default's among them.
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

// CountFailure counts what has gone wrong with the filter.
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

// Counts are those of this run, and of those that Resume was told.
func (a *Account) Counts() stats.FilterCounts {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts.Clone()
}

// Resume counts on from what an earlier run has counted.
func (a *Account) Resume(was stats.FilterCounts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts.Add(was)
}

// FlushLog says what was held back of what the filter said.
func (a *Account) FlushLog() { a.log.close() }
