// Package ranker combines a crawl order with the numbers of the URLs and the log of links.
//
// It computes the place of a URL in its host's queue, and reports changes of places.
//
// For each page, the crawl calls
//
//	Share        weight of each of the page's links
//	ReportDelta  importance to report to another node for one of its URLs, if any
//	Fetched      adds the page and its links; returns the place of each URL of this node, and which places rose
//	AddExternal  the same for importance that other nodes have reported
//	Mark         position for the journal, from which Open continues
//
// and when hosts move between nodes
//
//	Export       importance to send with a URL that moves to another node
//	Import       AddExternal for URLs that moved to this node
//	Reclaim      AddExternal for reports to other nodes that were not sent, since this node owns their URLs now
//
// In a separate goroutine, whenever Due is true, it calls
//
//	Refresh      computes ranks again from all links; returns batches of the changed ones
//	ReportAgain  other nodes' URLs whose importance has to be reported again after that
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

// Config configures a Ranker.
type Config struct {
	Order   rank.Order
	Key     siphash.Key // specific to the crawl; must not change while the log exists
	Log     linklog.Config
	Growth  float64 // share by which links must grow between two refreshes; 0.1
	MaxURLs int     // maximum number of URLs with numbers; ids.MaxURLs
	Others  bool    // there are other nodes, which need the worth of links to their URLs
}

// ErrFull means that no more URLs can be ranked. Further URLs have importance 1, and links to them are not counted. The
// results returned with this error are complete.
var ErrFull = ids.ErrFull

// minGrowth is the minimum number of bytes of links between two refreshes.
const minGrowth = 4 << 10

// warmUp is the number of refreshes that are due after a log is opened, since earlier estimates are lost.
const warmUp = 4

// A Ranker ranks URLs. It is safe for concurrent use.
type Ranker struct {
	cfg       Config
	iterative rank.Iterative // nil: the order is not iterative
	log       *linklog.Log

	refreshing sync.Mutex // held during a refresh; acquired before mu

	mu                sync.Mutex // guards the fields below; never held while waiting for the disk
	table             *ids.Table
	fetched           bits
	moved             bits          // URLs to which a refresh gave another place
	reports           *rank.Reports // nil: there are no other nodes
	expected          expected
	seenContributions recentContributions
	page              rank.Page // buffer
	contributions     []linklog.Contribution
	fresh             []ids.Key
	linked            []rank.ID
	before            []rank.Place
	known             int   // number of URLs before the current page or contributions
	refreshed         int64 // end of the log at the last refresh
	warmUpsLeft       int
	generation        uint64
}

// Open returns a ranker that continues from a mark; the zero mark starts an empty one.
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

// replay rebuilds the state from the log.
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
		if r.reports == nil { // an earlier run had other nodes
			r.reports = rank.NewReports(r.cfg.Order.Unit())
			r.grow()
		}
		r.reports.Add(g.To, g.Worth)
	}})
}

// Close closes the log. Data that was not synced may be lost.
func (r *Ranker) Close() error {
	r.refreshing.Lock()
	defer r.refreshing.Unlock()
	return r.log.Close()
}

// KeyOf returns the key of a canonical URL.
func (r *Ranker) KeyOf(url string) ids.Key { return ids.KeyOf(&r.cfg.Key, url) }

// A URL is the argument of queries.
type URL = ids.URL

// A Visit is a fetched page. Its slices may be reused after the call.
type Visit struct {
	Page   ids.Key
	Links  []URL // this node's URLs that the crawl may fetch; may contain duplicates
	Others []URL // other nodes' URLs
	// the share passed to ReportDelta for each of Others
	Shares []float32
	Out    int // different URLs that the page links to, including those of other nodes
}

// A Placement is the position of a URL in its host's queue.
type Placement struct {
	Place rank.Place
	Rose  bool // a known, pending URL moved up
}

// Share returns the weight of each of a page's out links, before Fetched is called for the page. It is 0 if the page
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

// ReportDelta returns the worth of links to another node's URL that was not reported to that node yet, and records it
// as reported; 0 if no report is needed. share is the weight of a link that will be added with Fetched; 0: none. The
// error is ErrFull or nil.
func (r *Ranker) ReportDelta(u *RemoteURL, share float32) (more float32, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.logFresh()
	id, err := r.number(u.Key)
	if err != nil || r.reports == nil {
		return share, err // reports about URLs without a number are not recorded
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

// Export returns the worth of links to a URL that moves to another node, and records it as reported to that node.
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

// Fetched adds a page, and appends the placement of each of its links, in their order. If the page was fetched before,
// its new links are not counted. The error is ErrFull or nil.
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

// A Contribution is the worth of other nodes' links to a URL, from their ReportDelta or Export.
type Contribution struct {
	URL
	Worth float32
	Tag   uint32 // distinguishes contributions to the same URL, so that duplicates are dropped; 0: none
}

// Import is AddExternal for URLs that move to this node. It subtracts the worth that this node has reported itself.
func (r *Ranker) Import(all []Contribution, to []Placement) ([]Placement, error) {
	r.subtractReported(all, func(told, worth float32) (gift, left float32) { return worth - told, 0 })
	return r.AddExternal(all, to)
}

// Reclaim is AddExternal for reports of ReportDelta that were not sent, because this node owns their URLs now.
func (r *Ranker) Reclaim(all []Contribution, to []Placement) ([]Placement, error) {
	r.subtractReported(all, func(told, worth float32) (gift, left float32) {
		if told == 0 { // Import has included it already
			return worth, 0
		}
		return 0, told - worth
	})
	return r.AddExternal(all, to)
}

// subtractReported adjusts contributions by the worth reported for their URLs. f returns the adjusted worth, and the
// worth that remains reported.
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

// AddExternal adds the worth of other nodes' links, and appends the placement of each URL. The error is ErrFull or nil.
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

// Places appends the places of URLs without new links, such as seeds or URLs that return to a queue. The error is
// ErrFull or nil.
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

// An Explanation is the rank data of a URL.
type Explanation struct {
	Importance float64
	Worth      float32 // of all links to it
	Fetched    bool
}

// Explain returns the rank data of a URL; known is false if there is none.
func (r *Ranker) Explain(u URL) (e Explanation, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, ok := r.table.Find(u.Key)
	if !ok {
		return e, false
	}
	return Explanation{r.cfg.Order.Importance(id, u.Depth), r.cfg.Order.Worth(id), r.fetched.has(id)}, true
}

// assignNumbers assigns numbers to links, and records their places before any change.
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
	unplaced   rank.Place = -1             // of new URLs
	unnumbered rank.ID    = math.MaxUint32 // no numbers are left
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

// number returns the number of a URL. The caller must log new URLs.
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

// logFresh logs new URLs that came without a page or contribution.
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

// Mark returns the current position, for the journal. Open can continue from it after a later Flush if the process
// dies, and after a later Sync if the machine does.
func (r *Ranker) Mark() linklog.Mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Mark()
}

// Flush writes all data that is not written yet, which keeps buffers small.
func (r *Ranker) Flush() error { return r.log.Flush() }

// Sync makes all data so far durable, and returns its mark.
func (r *Ranker) Sync() (linklog.Mark, error) { return r.log.Sync() }

// A Size is the size of a ranker.
type Size struct {
	URLs   int
	Memory int64 // bytes, of numbers and order, without links
	Links  linklog.Size
}

// Size returns the ranker's size.
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
