package synthweb

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxAgents   = 16
	maxExamples = 5
)

// A counter is one of the simple counts of a tally.
type counter int

const (
	connections counter = iota
	bytesSent
	questions
	repeats
	repeatsOther
	forbidden
	beforeRobots
	hasty
	impatient
	numCounters
)

// A tally records the server's work. It needs a few bits per resource and a few hundred bytes per host, and does not
// grow otherwise.
type tally struct {
	w        *Web
	hosts    []hostTally
	got      bitset // resources with a final answer
	whole    bitset // of these, those sent completely
	tried    bitset // Flaky resources that were requested
	statuses [600]atomic.Int64
	kinds    [numKinds]atomic.Int64
	counts   [numCounters]atomic.Int64
	round    atomic.Int64 // incremented by each reset

	mu       sync.Mutex // guards the following fields
	agents   map[string]*atomic.Int64
	examples map[string][]string
}

func newTally(w *Web) *tally {
	t := &tally{w: w, hosts: make([]hostTally, len(w.hosts)), got: newBitset(w.ids()), whole: newBitset(w.ids()),
		tried: newBitset(w.total)}
	t.reset(time.Now())
	return t
}

// reset clears the tally. Requests in progress are counted from now on.
func (t *tally) reset(now time.Time) {
	t.mu.Lock()
	t.agents, t.examples = make(map[string]*atomic.Int64), make(map[string][]string)
	t.round.Add(1)
	t.mu.Unlock()
	for _, set := range []bitset{t.got, t.whole, t.tried} {
		set.clear()
	}
	for _, counts := range [][]atomic.Int64{t.statuses[:], t.kinds[:], t.counts[:]} {
		for i := range counts {
			counts[i].Store(0)
		}
	}
	for i := range t.hosts {
		t.hosts[i].reset(now)
	}
}

// A visit is a request in progress.
type visit struct {
	ref     Ref
	target  []byte
	at      time.Time // arrival
	verdict verdict
}

// begin checks a request that arrived at now.
func (t *tally) begin(v *visit, now time.Time) {
	v.verdict = t.hosts[v.ref.Host].begin(now, v.ref.Kind == Robots, t.policy(v.ref.Host))
	t.kinds[v.ref.Kind].Add(1)
	t.countIf(beforeRobots, v.verdict.beforeRobots)
	t.countIf(hasty, v.verdict.hasty)
	t.countIf(impatient, v.verdict.impatient)
	if t.w.forbids(v.ref.Host, v.target) {
		t.counts[forbidden].Add(1)
		t.example("forbidden", v)
	}
	if v.ref.Kind == Unknown {
		t.example("unknown", v)
	}
}

func (t *tally) countIf(c counter, yes bool) {
	if yes {
		t.counts[c].Add(1)
	}
}

func (t *tally) policy(i uint32) (p policy) {
	h := &t.w.hosts[i]
	if h.traits.has(Delay) && !h.traits.has(NoRobots) && !h.traits.has(Forbidden) { // the others have no rules
		p.delay = t.w.cfg.CrawlDelay
	}
	if h.traits.has(Throttle) {
		p.burstEvery, p.retryAfter = t.w.cfg.BurstEvery, t.w.cfg.RetryAfter.Truncate(time.Second)
	}
	return p
}

// end records that the last bytes of the answer to v are about to be sent; status 0 means no answer.
func (t *tally) end(v *visit, status int, now time.Time) {
	t.statuses[status].Add(1)
	t.hosts[v.ref.Host].end(now, status, v.ref.Kind == Robots, t.policy(v.ref.Host))
}

// served records a final answer; whole reports whether it was sent completely.
func (t *tally) served(v *visit, status int, whole bool) {
	id := t.w.id(v.ref)
	if id < 0 || status == 0 || status == 429 || status >= 500 {
		return
	}
	t.got.add(id)
	switch {
	case !whole || !t.whole.add(id):
	case status == 200:
		t.counts[repeats].Add(1)
		t.example("repeats", v)
	default:
		t.counts[repeatsOther].Add(1)
	}
}

// aborted records that an answer was not sent completely after all.
func (t *tally) aborted(v *visit) {
	if id := t.w.id(v.ref); id >= 0 {
		t.whole.remove(id)
	}
}

// firstTry reports whether this is the first request for a Flaky resource.
func (t *tally) firstTry(r Ref) bool { return !t.tried.add(t.w.hosts[r.Host].first + int(r.N)) }

func (t *tally) example(what string, v *visit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.examples[what]) < maxExamples {
		url := t.w.cfg.scheme() + "://" + t.w.Host(int(v.ref.Host)) + string(v.target[:min(len(v.target), 256)])
		t.examples[what] = append(t.examples[what], strings.ToValidUTF8(url, "?"))
	}
}

// agent returns the request counter of a User-Agent.
func (t *tally) agent(name []byte) *atomic.Int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, ok := t.agents[string(name)]
	if ok {
		return n
	}
	key := strings.ToValidUTF8(string(name[:min(len(name), 256)]), "?")
	if len(t.agents) >= maxAgents {
		key = "others"
	}
	if t.agents[key] == nil {
		t.agents[key] = new(atomic.Int64)
	}
	return t.agents[key]
}

// score returns the score, judged by truth.
func (t *tally) score(truth *Truth, now time.Time) Score {
	s := Score{
		Connections: t.counts[connections].Load(), Bytes: t.counts[bytesSent].Load(), DNS: t.counts[questions].Load(),
		Repeats: t.counts[repeats].Load(), RepeatsOther: t.counts[repeatsOther].Load(),
		Forbidden: t.counts[forbidden].Load(), BeforeRobots: t.counts[beforeRobots].Load(),
		Hasty: t.counts[hasty].Load(), Impatient: t.counts[impatient].Load(),
		Robots: t.kinds[Robots].Load(), Traps: t.kinds[Calendar].Load(), Unknown: t.kinds[Unknown].Load(),
		Throttled: t.statuses[429].Load(),
		Statuses:  make(map[int]int64), Kinds: make(map[string]int64), Agents: make(map[string]int64),
	}
	for status := range t.statuses {
		if n := t.statuses[status].Load(); n > 0 {
			s.Statuses[status] = n
		}
	}
	for k := range t.kinds {
		if n := t.kinds[k].Load(); n > 0 {
			s.Kinds[Kind(k).String()] = n
			s.Requests += n
		}
	}
	t.pace(&s, now)
	t.coverage(&s, truth)
	return s
}

// pace sets the extremes over all hosts.
func (t *tally) pace(s *Score, now time.Time) {
	for i := range t.hosts {
		state := t.hosts[i].state(now)
		name := func() string { return t.w.Host(i) }
		s.MostInFlight.greatest(state.mostIn, name)
		s.MostOpen.greatest(state.mostOpen, name)
		if state.measured {
			s.LeastGap.least(state.gap, name)
			s.LeastStart.least(state.start, name)
		}
	}
}

// coverage sets the coverage, the agents and the examples.
func (t *tally) coverage(s *Score, truth *Truth) {
	s.Covered, s.Missing, s.Beyond = truth.overlap(t.got)
	s.Truth, s.Distinct = truth.Len(), s.Covered+s.Beyond
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, n := range t.agents {
		s.Agents[name] = n.Load()
	}
	s.Examples = make(map[string][]string)
	for what, urls := range t.examples {
		s.Examples[what] = append([]string(nil), urls...)
	}
	t.differences(s.Examples, "missing", func(at int) uint64 { return truth.set[at] &^ t.got.word(at) })
	t.differences(s.Examples, "beyond", func(at int) uint64 { return t.got.word(at) &^ truth.set[at] })
}

func (t *tally) differences(examples map[string][]string, what string, pick func(word int) uint64) {
	t.got.each(pick, func(id int) bool {
		examples[what] = append(examples[what], t.w.URL(t.w.ref(id), t.w.cfg.usualPort()))
		return len(examples[what]) < maxExamples
	})
}
