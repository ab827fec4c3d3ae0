package mesh

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// The strategies of a mesh.
const (
	Strategy      = "mesh"
	StrategyPaper = "mesh/paper" // see Config.Paper
)

// Terms are what all nodes of a crawl must agree on.
type Terms struct {
	Strategy string
	// With StrategyPaper: the URLs in a block of load, and the interval between updates of the nodes' loads. In a
	// Config, 0 means those of the other nodes, or DefaultBlock and DefaultUpdate at the first node.
	Block    int
	Interval time.Duration
}

// Defaults and limits of Terms.
const (
	DefaultBlock  = 20
	DefaultUpdate = 3 * time.Minute // the paper's sampling interval

	MaxBlock    = 1 << 20
	MinInterval = time.Second
	MaxInterval = 24 * time.Hour
)

// AgreedTerms are the terms of a crawl, and since when they have been.
type AgreedTerms struct {
	Terms
	Since time.Time
}

// Validate returns an error if a crawl cannot have agreed on these terms.
func (a *AgreedTerms) Validate() error {
	if a.Strategy == "" || a.Since.IsZero() {
		return errTerms
	}
	return a.Terms.validate()
}

// Check returns an error if a node with these terms cannot take part in a crawl with others. others names them.
func (t *Terms) Check(crawl Terms, others string) error {
	switch {
	case t.Strategy != crawl.Strategy:
		return fmt.Errorf("strategy %s: %s uses %q: use it here, too", t.Strategy, others, crawl.Strategy)
	case t.Block != 0 && t.Block != crawl.Block:
		return fmt.Errorf("blocks of %d URLs: %s uses blocks of %d: use these here, too, or name none", t.Block, others,
			crawl.Block)
	case t.Interval != 0 && t.Interval != crawl.Interval:
		return fmt.Errorf("updates every %v: %s updates every %v: use this here, too, or name none", t.Interval, others,
			crawl.Interval)
	}
	return nil
}

func (t *Terms) withDefaults() Terms {
	d := *t
	if d.Strategy == StrategyPaper {
		d.Block, d.Interval = cmp.Or(d.Block, DefaultBlock), cmp.Or(d.Interval, DefaultUpdate)
	}
	return d
}

var errTerms = errors.New("invalid terms")

func (t *Terms) validate() error {
	if len(t.Strategy) > maxName || t.Block < 0 || t.Block > MaxBlock || t.Interval < 0 || t.Interval > MaxInterval ||
		t.Strategy == StrategyPaper && (t.Block == 0 || t.Interval < MinInterval) {
		return errTerms
	}
	return nil
}

// terms has the nodes of a crawl agree on Terms. By the paper, a node that joins receives the size of blocks, the
// interval between updates and the time of the next one from a node that it knows. So all nodes update their loads at
// the same moments, which Measure announces.
//
// A node that knows no others has founded the crawl, and its terms hold. Another one requests the terms of its
// neighbors (messageTerms) until one has some, and cannot take part if they contradict its own (TermsRefused). With
// StrategyPaper, a node also sends its terms to each node that becomes a neighbor. If two nodes have each founded the
// crawl, for example before they found each other, the terms that are older by firstAge hold, or among equally old
// ones, those of the node that sorts first.
//
// An age may be made up, or that of another crawl in an old folder. So a node that has taken part in the crawl for
// memberAfter keeps its terms. A node that continues with those of an earlier process changes or refuses them only if
// most of its neighbors have others. Both log contradicting terms, and answer with their own: a newcomer then refuses
// itself.
//
// A younger node that has had terms for more than firstAge does not end at once because of terms that contradict its
// Config, either. It waits for foundAfter, twice as long as a node of another crawl that has come by mistake takes to
// refuse itself, and ends only if most of its neighbors still have other terms. Otherwise one node with an old folder
// would end all nodes of a crawl in its first minute.
//
// Invariant: once terms are agreed, they change only to ones that do not contradict the Config. After memberAfter they
// do not change, unless the wait for foundAfter began before.
type terms struct {
	core   *core
	place  *place
	own    Terms // of the Config
	apply  func(Terms)
	warned *bounded.Throttle[strategy.Node]

	agreed   AgreedTerms                   // Since is zero: not agreed
	stored   bool                          // an earlier process had terms
	joined   time.Time                     // when this node, with terms, first knew its place; zero: not yet
	others   map[strategy.Node]AgreedTerms // other terms that decide considers; nil: no decision is under way
	refused  bool
	asked    int // requests so far
	update   *bool
	next     time.Time                   // of the next update
	informed map[strategy.Node]time.Time // when neighbors were last sent terms that they did not request
}

const (
	askTerms = time.Second // between two requests
	maxAsks  = 10          // requests until a node that has no answer founds the crawl
	firstAge = 5 * time.Second

	memberAfter = time.Minute
	decideAfter = 10 * time.Second // in which all neighbors send their terms
	foundAfter  = 2 * decideAfter

	maxInformed = 1 << 10 // remembered nodes
	warnEvery   = time.Minute
	maxWarned   = 1 << 8 // remembered nodes
)

func newTerms(c *core, p *place, own Terms, earlier AgreedTerms) *terms {
	return &terms{core: c, place: p, own: own, agreed: earlier, stored: earlier.Strategy != "",
		warned: bounded.NewThrottle[strategy.Node](warnEvery, maxWarned)}
}

func (t *terms) isAgreed() bool { return !t.agreed.Since.IsZero() }

// isMember reports whether this node has taken part in the crawl for a while.
func (t *terms) isMember() bool { return !t.joined.IsZero() && t.core.now.Sub(t.joined) >= memberAfter }

// start continues with the terms of an earlier process. By the default strategy, there is nothing to learn.
func (t *terms) start() {
	switch {
	case t.stored:
		t.agree(t.agreed, t.untilUpdate(t.agreed))
	case t.own.Strategy != StrategyPaper:
		t.found()
	default:
		t.core.after(askTerms, t.seek)
	}
}

func (t *terms) found() {
	d := t.own.withDefaults()
	t.agree(AgreedTerms{d, t.core.now}, d.Interval)
	t.core.do(TermsAgreed{Terms: t.agreed})
}

// agree adopts terms. The first update is after a time.
func (t *terms) agree(a AgreedTerms, first time.Duration) {
	t.agreed = a
	t.join()
	if t.own.Strategy == StrategyPaper {
		t.apply(a.Terms)
		t.updateAt(t.core.now.Add(first))
		t.inform()
	}
}

// join records when this node first takes part in the crawl.
func (t *terms) join() {
	if t.joined.IsZero() && t.isAgreed() && t.place.isFresh() {
		t.joined = t.core.now
	}
}

// untilUpdate returns the time until the next update: updates repeat every interval since terms were agreed.
func (t *terms) untilUpdate(a AgreedTerms) time.Duration {
	if a.Interval <= 0 {
		return 0
	}
	return a.Interval - max(t.core.now.Sub(a.Since), 0)%a.Interval
}

// updateAt schedules the next update, and repeats it every interval.
func (t *terms) updateAt(at time.Time) {
	if t.update != nil {
		*t.update = true
	}
	over := false
	t.update, t.next = &over, at
	t.core.at(at, &over, func() {
		t.core.do(Measure{})
		missed := t.core.now.Sub(at).Truncate(t.agreed.Interval) // while the machine was suspended
		t.updateAt(at.Add(missed + t.agreed.Interval))
	})
}

// seek repeats ask until terms are agreed.
func (t *terms) seek() {
	if t.isAgreed() || t.refused {
		return
	}
	t.core.after(askTerms, t.seek)
	t.query()
}

// placed processes that this node has found its place.
func (t *terms) placed() {
	t.join()
	t.query()
}

// query requests the terms of a neighbor. A node that has found its place and has none founds the crawl.
func (t *terms) query() {
	if t.isAgreed() || t.refused || !t.place.isFresh() {
		return
	}
	nodes := t.place.overlay.Neighbors()
	if len(nodes) == 0 || t.asked >= maxAsks {
		t.found()
		return
	}
	t.send(nodes[t.asked%len(nodes)], true)
	t.asked++
}

// inform sends the terms to new neighbors.
func (t *terms) inform() {
	if !t.isAgreed() || t.own.Strategy != StrategyPaper {
		return
	}
	before := t.informed
	t.informed = map[strategy.Node]time.Time{}
	for _, n := range t.place.overlay.Neighbors() {
		if at, was := before[n]; was {
			t.informed[n] = at
		} else {
			t.sendUnasked(n)
		}
	}
}

func (t *terms) sendUnasked(to strategy.Node) {
	if t.informed == nil || len(t.informed) > maxInformed {
		t.informed = map[strategy.Node]time.Time{}
	}
	t.informed[to] = t.core.now
	t.send(to, false)
}

func (t *terms) age() time.Duration { return max(t.core.now.Sub(t.agreed.Since), 0) }

func (t *terms) send(to strategy.Node, ask bool) {
	w := varint.Writer{messageTerms}
	w.Bool(ask)
	w.Bool(t.isAgreed())
	if t.isAgreed() {
		w.String(t.agreed.Strategy)
		w.Uint(uint64(t.agreed.Block))
		w.Uint(uint64(t.agreed.Interval / time.Millisecond))
		w.Uint(uint64(t.age() / time.Millisecond))
		w.Uint(uint64(max(t.next.Sub(t.core.now), 0) / time.Millisecond))
	}
	t.core.do(Send{To: to, Data: w})
}

// receive processes a messageTerms.
func (t *terms) receive(from strategy.Node, r *varint.Reader) error {
	ask := r.Bool()
	if has := r.Bool(); has {
		theirs := Terms{Strategy: r.String(), Block: int(r.Uint() % (2 * MaxBlock)), Interval: readTime(r)}
		age, first := readTime(r), readTime(r)
		if err := theirs.validate(); err != nil || !r.Complete() || first > max(theirs.Interval, 0) {
			return errMessage
		}
		t.compare(from, theirs, age, first)
	} else if !r.Complete() {
		return errMessage
	}
	if ask {
		t.send(from, false)
	}
	return nil
}

func readTime(r *varint.Reader) time.Duration {
	return time.Duration(r.Uint()%(1<<40)) * time.Millisecond
}

// compare compares the terms of another node with those of this one.
func (t *terms) compare(from strategy.Node, theirs Terms, age, first time.Duration) {
	older := age - t.age()
	a := AgreedTerms{theirs, t.core.now.Add(-age)}
	switch same := theirs == t.agreed.Terms; {
	case t.refused:
	case t.isAgreed() && same:
		if older > firstAge && t.own.Strategy == StrategyPaper {
			t.updateAt(t.core.now.Add(first))
			t.agreed.Since = a.Since
		}
	case t.isMember() || t.stored || t.others != nil:
		t.resist(from, a)
	case t.isAgreed() && older > firstAge && t.age() > firstAge && t.own.Check(theirs, from.Name()) != nil:
		t.resist(from, a)
	case t.isAgreed() && (older < -firstAge || older <= firstAge && t.core.self < from):
		t.answer(from)
	default:
		t.adopt(from, a, first)
	}
}

// answer sends the terms to a node that has others, if it has not just got them.
func (t *terms) answer(to strategy.Node) {
	if t.core.now.Sub(t.informed[to]) >= askTerms {
		t.sendUnasked(to)
	}
}

// adopt replaces the terms by those of another node, or refuses these.
func (t *terms) adopt(from strategy.Node, a AgreedTerms, first time.Duration) {
	if err := t.own.Check(a.Terms, "node "+from.Name()); err != nil {
		t.refused = true
		t.core.do(TermsRefused{Err: err})
		return
	}
	t.agree(a, first)
	t.core.do(TermsAgreed{Terms: t.agreed})
}

// resist logs that another node has other terms, and answers with those of this one. It records the other terms for a
// decision that is under way, or begins one if this node is young.
func (t *terms) resist(from strategy.Node, a AgreedTerms) {
	if t.warned.Allow(from, t.core.now) {
		t.core.log.Warn("another node has other terms than this one: it may belong to another crawl",
			"node", from.Name(), "strategy", a.Strategy, "block-size", a.Block, "balance-every", a.Interval)
	}
	t.answer(from)
	if t.isMember() && t.others == nil || len(t.others) >= maxInformed {
		return
	}
	if t.others == nil {
		t.others = map[strategy.Node]AgreedTerms{}
		after := foundAfter
		if t.stored {
			after = decideAfter
		}
		t.core.after(after, t.decide)
	}
	t.others[from] = a
}

// decide has this node adopt or refuse other terms than its own, if most neighbors have some.
func (t *terms) decide() {
	others := t.others
	t.others = nil
	if t.stored && t.isMember() || t.refused {
		return
	}
	neighbors := t.place.overlay.Neighbors()
	differ := slices.DeleteFunc(slices.Clone(neighbors), func(n strategy.Node) bool {
		a, is := others[n]
		return !is || a.Terms == t.agreed.Terms
	})
	if 2*len(differ) > len(neighbors) {
		a := others[differ[0]]
		t.adopt(differ[0], a, t.untilUpdate(a))
	}
}
