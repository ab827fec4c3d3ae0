package crawl

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
	"kumo/internal/content/usage"
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
)

const (
	tdmTTL      = 24 * time.Hour   // lifetime of an origin's rules, as of those of robots.txt
	tdmErrorTTL = 10 * time.Minute // if the file could not be fetched
	tdmMaxBytes = 16 << 20         // approximate memory for rules; those of more origins are fetched again
	tdmWait     = 100 * time.Millisecond
)

// tdmFiles are the rules for text and data mining of the origins that were met last. They are in two generations: new
// ones enter the young one, and when it has half of the memory, the old one is dropped.
type tdmFiles struct {
	mu         sync.Mutex
	young, old map[string]tdmFile
	size       int // approximate bytes of the young generation
	underWay   map[string]bool
}

type tdmFile struct {
	rules   *usage.TDMRep // nil: there is no file
	expires time.Time
}

func newTDMFiles() *tdmFiles {
	return &tdmFiles{young: map[string]tdmFile{}, underWay: map[string]bool{}}
}

// get returns an origin's rules. If they are unknown, it reports whether the caller is the first to need them, and must
// fetch them and then call release.
func (t *tdmFiles) get(origin string, now time.Time) (rules *usage.TDMRep, known, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, young := t.young[origin]
	if !young {
		f = t.old[origin]
	}
	switch {
	case now.Before(f.expires):
		if !young {
			t.add(origin, f)
		}
		return f.rules, true, false
	case t.underWay[origin]:
		return nil, false, false
	}
	t.underWay[strings.Clone(origin)] = true
	return nil, false, true
}

func (t *tdmFiles) release(origin string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.underWay, origin)
}

func (t *tdmFiles) put(origin string, f tdmFile) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(strings.Clone(origin), f)
}

func (t *tdmFiles) add(origin string, f tdmFile) {
	size := 150 + len(origin) + f.rules.Size()
	if t.size > 0 && t.size+size > tdmMaxBytes/2 {
		t.old, t.young, t.size = t.young, map[string]tdmFile{}, 0
	}
	t.young[origin] = f
	t.size += size
}

// A tdmVisit is a worker's visit that needs the rules for text and data mining of its URL.
type tdmVisit struct {
	*worker
	visited *frontier.Visit
	url     weburl.URL
}

// read sets the rule of the URL, if the crawl obeys such rules. If the origin's rules are unknown, the visit fetches
// them instead of its URL, which is queued again: then the host's delay is between the two requests. If it returns
// false, the visit is over.
func (w *tdmVisit) read(ctx context.Context) (bool, error) {
	v, u := w.visited, w.url
	if w.visits.cfg.usageOf(u.Host())&policy.UsageTDM == 0 || v.Kind == page.Sitemap {
		return true, nil
	}
	files, origin := w.visits.gate.tdm, u.Origin()
	rules, known, first := files.get(origin, w.visits.cfg.Now())
	switch {
	case known:
		w.reader.tdm = rules.Match(u.RequestURI())
		return true, nil
	case !first:
		w.returnQuota(v)
		w.visits.frontier.Postpone(v, tdmWait)
		return false, nil
	}
	defer files.release(origin)
	if !w.visits.cfg.IgnoreRobots && !w.visits.gate.allowsTDMRep(origin) {
		files.put(origin, tdmFile{expires: w.visits.cfg.Now().Add(tdmTTL)})
		return true, nil
	}
	if !w.awaitTurn(ctx, v, u) {
		return false, nil
	}
	w.returnQuota(v)
	return false, w.fetch(ctx)
}

// allowsTDMRep reports whether an origin's robots.txt allows the crawl to fetch the file.
func (g *robotsGate) allowsTDMRep(origin string) bool {
	rules, known := g.Rules.Get(origin)
	if !known {
		return true // it has just expired
	}
	ok, _ := rules.Allowed(usage.TDMRepPath)
	return ok
}

// fetch fetches the origin's tdmrep.json in the turn of a visit, and ends the visit. A redirect counts as a missing
// file.
func (w *tdmVisit) fetch(ctx context.Context) error {
	v, u := w.visited, w.url
	start := w.visits.cfg.Now()
	v.Tries++
	req := fetch.Request{
		URL:       u.Origin() + usage.TDMRepPath,
		Trusted:   w.visits.scopeSeeds.trusts(u),
		NoCookies: true,
		OnArrival: w.answer.acquireBuffers,
	}
	w.override(&req, u)
	req.MaxBody = visit.MaxRobots
	w.turn.requested = true
	resp := &w.answer.resp
	err := w.visits.fetcher.Get(ctx, req, resp)
	w.visits.limits.count(resp.RawLen())
	rec := w.record(v, start)
	rec.URL, rec.Final, rec.From, rec.Path = req.URL, req.URL, v.URL, w.visits.gate.names.intern(v.Path+"P")
	rec.Robots = true
	f := w.visits.outcomes.judge(ctx, v, rec, resp, err, visit.JudgeRobots)
	if f.Again {
		return w.retry(v, rec, f)
	}
	v.Tries = 0
	file := tdmFile{expires: start.Add(tdmErrorTTL)}
	if rec.Failure, rec.Detail = f.Failure, f.Detail; f.Failure == page.None {
		w.visits.batches.stats.RobotsFetched(resp.RawLen())
		w.answer.acquireSlot()
		if err := w.answer.decoder.Decode(resp, visit.MaxRobots); errors.Is(err, fetch.ErrDisk) {
			return err
		} else if err != nil {
			resp.Malformed = err.Error()
		}
		if rec.Digest, err = digest(resp); err != nil {
			return err
		}
		if resp.Status < 500 {
			file.expires = start.Add(tdmTTL)
		}
		if resp.Status/100 == 2 {
			file.rules, _ = usage.ParseTDMRep(resp.Body) // what cannot be parsed states nothing
		}
	}
	err = w.visits.ledger.Within(func() error {
		return w.visits.ledger.Put([]*page.Record{rec}, nil, func() []byte { return nil })
	})
	if err != nil {
		return err
	}
	w.visits.gate.tdm.put(item.OriginOf(req.URL), file)
	return w.done(v, f, v.Item)
}
