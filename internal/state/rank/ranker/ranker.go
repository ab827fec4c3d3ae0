// Package ranker combines a crawl order with the numbers of the URLs and the log of links.
//
// It computes the place of a URL in its host's queue, and reports changes of places.
//
// For each page, the crawl calls
//
//	Share     weight of each of the page's links
//	Tell      importance to report to another node for one of its URLs, if any
//	Fetched   adds the page and its links; returns the place of each URL of this node, and which places rose
//	Give      the same for importance that other nodes have reported
//	Mark      position for the journal, from which Open continues
//
// and when hosts move between nodes
//
//	Hand      importance to send with a URL that moves to another node
//	Arrive    Give for URLs that moved to this node
//	TakeBack  Give for reports to other nodes that were not sent, since this node owns their URLs now
//
// In a separate goroutine, whenever Due is true, it calls
//
//	Refresh   computes ranks again from all links; returns batches of the changed ones
//	Again     other nodes' URLs whose importance has to be reported again after that
//
// A page costs one lookup per link. Refreshes follow each other when the links have grown by a certain share, so they
// cost a constant per link, too. No memory is allocated per link.
//
// The only persistent state is the log of links ([kumo/internal/state/rank/linklog]). Open reads it and rebuilds the
// rest.
package ranker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"kumo/internal/base/siphash"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/ids"
	"kumo/internal/state/rank/linklog"
)

// Config says how URLs are ranked.
type Config struct {
	Order   rank.Order
	Key     siphash.Key // the crawl's own: the same whenever its log is opened
	Log     linklog.Config
	Growth  float64 // by which share links become more between two refreshes; 0.1
	MaxURLs int     // URLs, beyond which none gets a number; ids.Most
	Others  bool    // there are other nodes, which are told what links to their URLs are worth
}

// ErrFull says that there are as many URLs as are to be ranked. Those that come then have importance 1, and links to
// them are not counted. It comes beside an answer that is whole.
var ErrFull = ids.ErrFull

// minGrowth is how many bytes of links there are between two refreshes at least.
const minGrowth = 4 << 10

// warmUp is how many refreshes are due after a log was opened: the estimates of the process before are gone.
const warmUp = 4

// A Ranker ranks URLs. Its methods may be called by many goroutines at once.
type Ranker struct {
	cfg       Config
	iterative rank.Iterative // nil: the order is none
	log       *linklog.Log

	refreshing sync.Mutex // held by who refreshes; before mu

	mu                sync.Mutex // guards what follows; nobody waits for the disk with it held
	table             *ids.Table
	fetched           bits
	moved             bits          // a refresh gave it another place
	reports           *rank.Reports // nil: nobody is told anything
	expected          expected
	seenContributions recentContributions
	page              rank.Page // its room is used again
	contributions     []linklog.Contribution
	fresh             []ids.Key
	linked            []rank.ID
	before            []rank.Place
	known             int   // URLs before the page or gifts that come in
	refreshed         int64 // where the log ended when the last refresh did
	warmUpsLeft       int
	generation        uint64
}

// Open makes a ranker that goes on from a mark; the mark 0 begins anew.
func Open(ctx context.Context, cfg Config, mark linklog.Mark) (*Ranker, error) {
	if cfg.Growth == 0 {
		cfg.Growth = 0.1
	}
	if cfg.MaxURLs == 0 {
		cfg.MaxURLs = ids.MaxURLs
	}
	log, err := linklog.Open(cfg.Log, mark)
	if err != nil {
		return nil, err
	}
	r := &Ranker{cfg: cfg, log: log, table: ids.New(), expected: expected{}, seenContributions: newRecentContributions()}
	if cfg.Others {
		r.reports = rank.NewReports(cfg.Order.Unit())
	}
	r.iterative, _ = cfg.Order.(rank.Iterative)
	if err := r.replay(ctx); err != nil {
		log.Close() //nolint:errcheck // the first error says what is wrong
		return nil, err
	}
	return r, nil
}

// replay makes of the log what it was made beside.
func (r *Ranker) replay(ctx context.Context) error {
	err := r.log.Keys(func(k ids.Key) error {
		_, isNew, err := r.table.Add(k)
		if err == nil && !isNew {
			err = fmt.Errorf("%w: a URL has two numbers", linklog.ErrDamaged)
		}
		return err
	})
	if err != nil {
		return err
	}
	r.grow()
	view := r.log.View(0)
	if view.Len() > 0 {
		r.warmUpsLeft = warmUp
	}
	return view.Read(ctx, &linklog.Reader{Page: func(p *rank.Page) {
		r.fetched.set(p.ID, true)
		r.cfg.Order.Fetched(p)
	}, Contribution: func(g linklog.Contribution) {
		r.cfg.Order.AddExternal(g.To, g.Worth)
		r.seenContributions.add(g)
	}, Reported: func(g linklog.Contribution) {
		if r.reports == nil { // in an earlier run there were other nodes
			r.reports = rank.NewReports(r.cfg.Order.Unit())
			r.grow()
		}
		r.reports.Add(g.To, g.Worth)
	}})
}

// Close closes the log. What was not synced may be lost.
func (r *Ranker) Close() error {
	r.refreshing.Lock()
	defer r.refreshing.Unlock()
	return r.log.Close()
}

// KeyOf is what a canonical URL is known by.
func (r *Ranker) KeyOf(url string) ids.Key { return ids.KeyOf(&r.cfg.Key, url) }

// A URL is one that is asked about.
type URL = ids.URL

// A Visit is a page that was fetched. Its slices may be used again once it was told.
type Visit struct {
	Page   ids.Key
	Links  []URL // to this node's URLs, of those that the crawl may fetch; the same may be there several times
	Others []URL // to other nodes' URLs
	// what Tell was given as the share of each of Others
	Shares []float32
	Out    int // how many different URLs the page links to in all, other nodes' included
}

// A Standing is where a URL belongs in its host's queue.
type Placement struct {
	Place rank.Place
	Rose  bool // it was known and not fetched, and goes before what it did
}

// Share is the weight of each of a page's out links, before Fetched is called with the page. It is 0 for a page that
// has no number or was fetched before.
func (r *Ranker) Share(page ids.Key, out int) (float32, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.logFresh()
	id, err := r.number(page)
	if err != nil || r.fetched.has(id) {
		return 0, err
	}
	return r.cfg.Order.Share(id, out), nil
}

// ReportDelta returns by how much the worth of links to another node's URL exceeds what that node was told; 0 if it need not
// know. It includes share, the weight of a link that Fetched has yet to report; 0: none. The error is ErrFull, or none.
func (r *Ranker) ReportDelta(u *RemoteURL, share float32) (more float32, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.logFresh()
	id, err := r.number(u.Key)
	if err != nil || r.reports == nil {
		return share, err // of what has no number nobody knows what was told
	}
	r.expected.add(id, share)
	more = r.reports.Delta(id, r.cfg.Order.Worth(id)+r.expected[id].worth)
	if more == 0 {
		return 0, nil
	}
	isNew := r.reports.Worth(id) == 0
	r.markReported(id, more)
	if isNew && r.iterative != nil {
		r.log.AddOther(id, u.Address, u.Depth)
	}
	return more, nil
}

func (r *Ranker) markReported(u rank.ID, more float32) {
	r.reports.Add(u, more)
	r.log.AddReported(r.fresh, linklog.Contribution{To: u, Worth: more})
	r.fresh = r.fresh[:0]
}

// Export is what links to a URL are worth that moves to another node, which is told so by it.
func (r *Ranker) Export(u URL) (worth float32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, ok := r.table.Find(u.Key)
	if !ok {
		return 0
	}
	worth = r.cfg.Order.Worth(id)
	if r.reports != nil {
		r.markReported(id, worth-r.reports.Worth(id))
	}
	return worth
}

// Fetched takes a page in, and appends where each of its links belongs now, in their order. A page that was fetched
// before changes nothing: what it linked to then counts. The error is ErrFull, or none.
func (r *Ranker) Fetched(v *Visit, to []Placement) ([]Placement, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, share := range v.Shares {
		if id, ok := r.table.Find(v.Others[i].Key); ok {
			r.expected.remove(id, share)
		}
	}
	id, err := r.number(v.Page)
	if err != nil || r.fetched.has(id) {
		full := r.assignNumbers(v.Links)
		r.logFresh()
		return r.placements(v.Links, to), errors.Join(err, full)
	}
	r.fetched.set(id, true)
	err = r.assignNumbers(v.Links)
	p := &r.page
	p.ID, p.Links = id, append(p.Links[:0], r.linked...)
	for i := range v.Others {
		other, failed := r.number(v.Others[i].Key)
		if p.Links = append(p.Links, other); failed != nil {
			err = failed
		}
	}
	if r.reports != nil {
		r.reports.AddBudget(len(v.Others))
	}
	slices.Sort(p.Links)
	p.Links = slices.Compact(p.Links)
	if n := len(p.Links); n > 0 && p.Links[n-1] == unnumbered {
		p.Links = p.Links[:n-1]
	}
	p.Out = max(v.Out, len(p.Links))
	r.log.AddPage(r.fresh, p)
	r.fresh = r.fresh[:0]
	r.cfg.Order.Fetched(p)
	return r.placements(v.Links, to), err
}

// A Gift is what links that other nodes found are worth to a URL, as Tell or Hand has it.
type Contribution struct {
	URL
	Worth float32
	Tag   uint32 // tells it from others to the same URL, so that one that comes again does not count; 0: it has none
}

// Import is Give for URLs that move here: of what their links are worth, this node has told some itself.
func (r *Ranker) Import(all []Contribution, to []Placement) ([]Placement, error) {
	r.subtractReported(all, func(told, worth float32) (gift, left float32) { return worth - told, 0 })
	return r.AddExternal(all, to)
}

// Reclaim is Give for what was meant for another node, as Tell has said, and did not go there, because the URLs are
// this node's by now.
func (r *Ranker) Reclaim(all []Contribution, to []Placement) ([]Placement, error) {
	r.subtractReported(all, func(told, worth float32) (gift, left float32) {
		if told == 0 { // which Arrive has seen to, without this
			return worth, 0
		}
		return 0, told - worth
	})
	return r.AddExternal(all, to)
}

// subtractReported has gifts be what they are beside what was told of their URLs, and notes how much of that is left.
func (r *Ranker) subtractReported(all []Contribution, f func(told, worth float32) (gift, left float32)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reports == nil {
		return
	}
	for i := range all {
		if id, ok := r.table.Find(all[i].Key); ok {
			told := r.reports.Worth(id)
			gift, left := f(told, all[i].Worth)
			if all[i].Worth = gift; left != told {
				r.markReported(id, left-told)
			}
		}
	}
}

// AddExternal takes links in that other nodes found, and appends where each URL belongs now. The error is ErrFull, or none.
func (r *Ranker) AddExternal(all []Contribution, to []Placement) (_ []Placement, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.linked, r.before, r.contributions, r.known = r.linked[:0], r.before[:0], r.contributions[:0], r.table.Len()
	for i := range all {
		if failed := r.addNumber(&all[i].URL); failed != nil {
			err = failed
			continue
		}
		g := linklog.Contribution{To: r.linked[i], Worth: all[i].Worth, Tag: all[i].Tag}
		if g.Worth != 0 && r.seenContributions.add(g) {
			r.contributions = append(r.contributions, g)
		}
	}
	slices.SortStableFunc(r.contributions, func(a, b linklog.Contribution) int { return int(int64(a.To) - int64(b.To)) })
	for _, g := range r.contributions {
		r.cfg.Order.AddExternal(g.To, g.Worth)
	}
	r.log.AddContributions(r.fresh, r.contributions)
	r.fresh = r.fresh[:0]
	for i := range all {
		to = append(to, r.placement(i, &all[i].URL))
	}
	return to, err
}

// Places appends where URLs belong that nothing has linked to, such as seeds, or that are put into queues again. The
// error is ErrFull, or none.
func (r *Ranker) Places(all []URL, to []rank.Place) (_ []rank.Place, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.logFresh()
	for i := range all {
		id, failed := r.number(all[i].Key)
		if failed != nil {
			err = failed
		}
		to = append(to, r.place(id, all[i].Depth))
	}
	return to, err
}

// An Explanation is what is known of a URL.
type Explanation struct {
	Importance float64
	Worth      float32 // of all links to it
	Fetched    bool
}

// Explain says what is known of a URL; false if nothing is.
func (r *Ranker) Explain(u URL) (e Explanation, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, ok := r.table.Find(u.Key)
	if !ok {
		return e, false
	}
	return Explanation{r.cfg.Order.Importance(id, u.Depth), r.cfg.Order.Worth(id), r.fetched.has(id)}, true
}

// assignNumbers numbers links, and notes where they belong before anything changes.
func (r *Ranker) assignNumbers(links []URL) (err error) {
	r.linked, r.before, r.known = r.linked[:0], r.before[:0], r.table.Len()
	for i := range links {
		if failed := r.addNumber(&links[i]); failed != nil {
			err = failed
		}
	}
	return err
}

const (
	unplaced   rank.Place = -1             // of what was not known
	unnumbered rank.ID    = math.MaxUint32 // there are no numbers left
)

func (r *Ranker) addNumber(u *URL) error {
	id, err := r.number(u.Key)
	place := unplaced
	if err == nil && int(id) < r.known && !r.fetched.has(id) {
		place = r.place(id, u.Depth)
	}
	r.linked, r.before = append(r.linked, id), append(r.before, place)
	return err
}

func (r *Ranker) placements(links []URL, to []Placement) []Placement {
	for i := range links {
		to = append(to, r.placement(i, &links[i]))
	}
	return to
}

func (r *Ranker) placement(i int, u *URL) Placement {
	place := r.place(r.linked[i], u.Depth)
	return Placement{place, r.before[i] != unplaced && place < r.before[i]}
}

func (r *Ranker) place(u rank.ID, depth int32) rank.Place {
	if u == unnumbered {
		return rank.PlaceOf(1)
	}
	return rank.PlaceOf(r.cfg.Order.Importance(u, depth))
}

// number is the number of a URL. One that is new is to be logged.
func (r *Ranker) number(k ids.Key) (rank.ID, error) {
	if r.table.Len() >= r.cfg.MaxURLs {
		if id, ok := r.table.Find(k); ok {
			return id, nil
		}
		return unnumbered, ErrFull
	}
	id, isNew, err := r.table.Add(k)
	if err != nil {
		return unnumbered, err
	}
	if isNew {
		r.fresh = append(r.fresh, k)
		r.grow()
	}
	return id, nil
}

// logFresh logs URLs that became known without a page or a gift.
func (r *Ranker) logFresh() {
	if len(r.fresh) > 0 {
		r.log.AddKnown(r.fresh)
		r.fresh = r.fresh[:0]
	}
}

func (r *Ranker) grow() {
	r.cfg.Order.Grow(r.table.Len())
	r.fetched.grow(r.table.Len())
	if r.reports != nil {
		r.reports.Grow(r.table.Len())
	}
}

// Mark is what was told until now, to be journalled with it. Open with the mark goes on from there, if Flush was called
// since, and the process died; or if Sync was, and the machine did.
func (r *Ranker) Mark() linklog.Mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Mark()
}

// Flush writes what is not written yet. It keeps what waits to be written, in memory, small.
func (r *Ranker) Flush() error { return r.log.Flush() }

// Sync makes durable what was told so far. Open with the mark goes on from there.
func (r *Ranker) Sync() (linklog.Mark, error) { return r.log.Sync() }

// A Size is how much a ranker has.
type Size struct {
	URLs   int
	Memory int64 // bytes, of numbers and order, links not included
	Links  linklog.Size
}

// Size is how much the ranker has.
func (r *Ranker) Size() Size {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.table.Bytes() + int64(r.fetched.Room()+r.moved.Room())
	if r.reports != nil {
		n += r.reports.Bytes()
	}
	if o, ok := r.cfg.Order.(interface{ Bytes() int64 }); ok {
		n += o.Bytes()
	}
	return Size{r.table.Len(), n, r.log.Size()}
}
