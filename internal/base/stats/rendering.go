package stats

import "time"

// Rendering counts what a run has rendered in a browser.
type Rendering struct {
	Pages    int64   `json:"pages"`
	Gained   int64   `json:"gained"`   // pages whose scripts brought links or text
	Failed   int64   `json:"failed"`   // pages that the browser could not render; they were used as received
	Requests int64   `json:"requests"` // of pages, that servers got
	Cached   int64   `json:"cached"`   // requests that were answered from memory
	Blocked  int64   `json:"blocked"`  // requests that the crawl's rules forbid, or that a crawl does not make
	Seconds  float64 `json:"seconds"`  // total time of the pages

	ActionsFailed int64 `json:"actions_failed"` // pages on which actions or the user's script did not end
	Shots         int64 `json:"shots"`          // pictures of pages, and prints
	ShotsFailed   int64 `json:"shots_failed"`
}

// merge returns the sum of two nodes' counts. Either may be nil.
func (r *Rendering) merge(o *Rendering) *Rendering {
	switch {
	case o == nil:
		return r
	case r == nil:
		r = &Rendering{}
	}
	return &Rendering{Pages: r.Pages + o.Pages, Gained: r.Gained + o.Gained, Failed: r.Failed + o.Failed,
		Requests: r.Requests + o.Requests, Cached: r.Cached + o.Cached, Blocked: r.Blocked + o.Blocked,
		Seconds: r.Seconds + o.Seconds, ActionsFailed: r.ActionsFailed + o.ActionsFailed, Shots: r.Shots + o.Shots,
		ShotsFailed: r.ShotsFailed + o.ShotsFailed}
}

// print prints a row. all is the number of rendered pages of all runs.
func (r *Rendering) print(row func(name, format string, args ...any), all int64) {
	if r == nil {
		return
	}
	mean := time.Duration(0)
	if r.Pages > 0 {
		mean = time.Duration(r.Seconds / float64(r.Pages) * float64(time.Second)).Round(10 * time.Millisecond)
	}
	row("rendered", "%s (%d in this run, %v each; %d gained links or text, %d failed) with %s, %d more from memory, "+
		"%d blocked", Count(all, "pages"), r.Pages, mean, r.Gained, r.Failed, Count(r.Requests, "requests"), r.Cached,
		r.Blocked)
	if r.ActionsFailed > 0 {
		row("actions", "did not end on %s", Count(r.ActionsFailed, "rendered pages"))
	}
	if r.Shots+r.ShotsFailed > 0 {
		row("pictures", "%d of rendered pages, %d failed", r.Shots, r.ShotsFailed)
	}
}
