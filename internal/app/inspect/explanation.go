package inspect

import (
	"time"

	"kumo/internal/content/policy"
)

// An Explanation is what became of one URL. What is not known, or does not apply, is left out.
type Explanation struct {
	URL     string  `json:"url"` // as the crawl has it: canonical, by its rules
	Fate    Outcome `json:"fate"`
	Running bool    `json:"running"` // the crawl runs
	// onlyValue the crawl's files are there, and not its state: what is in no file is not known
	Files bool `json:"files_only,omitempty"`
	// the crawl's disk has not answered for so long, in nanoseconds: what it has is missing here
	Unread time.Duration `json:"unread,omitempty"`
	// the crawl's files are being gone through for the first time: what they have may be missing for a moment
	Reading bool   `json:"reading,omitempty"`
	Known   *Known `json:"known,omitempty"`
	From    string `json:"from,omitempty"` // the page whose link brought it in
	Seed    bool   `json:"seed,omitempty"` // the user named it

	Scope  Scope   `json:"scope"`
	Robots *Robots `json:"robots,omitempty"`

	Waits *Item `json:"waits,omitempty"`
	// in its host's queue, from 1; 0 if it is under way, or behind the first 10,000
	Place   int    `json:"place,omitempty"`
	Active  bool   `json:"active,omitempty"`
	Host    *Host  `json:"host,omitempty"`
	GivenUp string `json:"given_up,omitempty"` // why its host was given up for this run

	Claiming  bool `json:"claiming,omitempty"`  // a link to it waits until those who remember its host have it
	Elsewhere bool `json:"elsewhere,omitempty"` // another node is the one to fetch it

	// visits of pages with unread links; the URL may be one of them
	LinksCut int64 `json:"links_cut,omitempty"`

	Overrides []policy.Applied `json:"overrides,omitempty"` // what it has in place of the crawl's settings, and by which

	Ranking *Ranking `json:"ranking,omitempty"`

	Page *Page `json:"page,omitempty"`
	// its first visit's, which says who brought it in where a later one's does not
	First   *Page `json:"-"`
	Skipped *Skip `json:"skipped,omitempty"` // its last line in skipped.jsonl
	Aside   *Skip `json:"aside,omitempty"`   // why it is set aside
	Merge   *Skip `json:"merge,omitempty"`   // what the next merge takes in or, with a rule, sets aside, if it is news
}

// A Fate is how things stand with a URL.
type Outcome string

// The fates.
const (
	Unknown     Outcome = "unknown"       // nobody has met it
	OutOfScope  Outcome = "out of scope"  // links to it are only counted
	Waiting     Outcome = "waiting"       // for its turn at its host
	Parked      Outcome = "parked"        // its host's robots.txt comes first
	Retry       Outcome = "to be retried" // it was visited, without success
	InFlight    Outcome = "under way"     // just being visited
	Undecided   Outcome = "undecided"     // it may have been met before: the next merge of known URLs tells
	Fetched     Outcome = "fetched"
	Redirected  Outcome = "redirected"     // fetched, and leads elsewhere
	Duplicate   Outcome = "duplicate"      // a page, and the same as one before, which it refers to
	Error       Outcome = "error"          // fetched, but the answer is no page: its status says that there is an error
	Failed      Outcome = "failed"         // for good
	Abandoned   Outcome = "given up"       // with its host, until the next run
	Deferred    Outcome = "set aside"      // by a rule that speaks of links: a better one may still bring it in
	Excluded    Outcome = "left out"       // by a rule
	Unaccounted Outcome = "in between"     // known, and no file or queue has it at this moment
	Claiming    Outcome = "being claimed"  // a link to it waits until those who remember its host have it
	Elsewhere   Outcome = "another node's" // which is the one to fetch it
	Unread      Outcome = "not read"       // the disk has not answered, or files are being read, and memory does not have it
)

// A Scope is what the crawl's rules say of a URL that a seed links to now.
type Scope struct {
	In   bool   `json:"in"`
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// Robots is what robots.txt says of a URL.
type Robots struct {
	Ignored bool      `json:"ignored,omitempty"` // the crawl does not ask
	File    string    `json:"file,omitempty"`    // after redirects
	Time    time.Time `json:"time,omitzero"`     // when it was fetched
	Allowed bool      `json:"allowed"`
	Line    int       `json:"line,omitempty"` // the number of the line that decides
	Text    string    `json:"text,omitempty"` // that line
}

// A Page is what was fetched. All but time, status and digest are those of its line in pages.jsonl, and lack without.
type Page struct {
	Time     time.Time `json:"time"`
	Status   int       `json:"status"` // 0: there was no answer
	Type     string    `json:"type,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"`
	Digest   string    `json:"digest,omitempty"`
	Final    string    `json:"final,omitempty"`     // where it redirects to
	Revisit  string    `json:"revisit,omitempty"`   // the URL whose record has the same payload
	LinksCut string    `json:"links_cut,omitempty"` // the limit that left links of it unread: memory, entries, length
	// what a visit after the first has found: changed, unchanged, gone, trouble
	Recrawl string `json:"recrawl,omitempty"`
	From    string `json:"from,omitempty"`
	Depth   int    `json:"depth"`
	WARC    string `json:"warc,omitempty"` // file below warc/, ".open" behind its name until it is closed
	Offset  int64  `json:"offset"`
}

// A Ranking is how important a URL is.
type Ranking struct {
	Order      string   `json:"order"`
	Importance float64  `json:"importance"`
	ByLinks    bool     `json:"by_links"`        // the order goes by links that were found
	Rules      []string `json:"rules,omitempty"` // of --prefer that match it
	// by what importance is multiplied where the URL waits, by such rules and a sitemap's priority as they were when it
	// was found; 0: by nothing
	Factor  float64 `json:"factor,omitempty"`
	Sitemap bool    `json:"sitemap,omitempty"` // a part of Factor is a sitemap's
}

// A Skip is why a URL was left out.
type Skip struct {
	Rule  string    `json:"rule,omitempty"`
	Why   string    `json:"why,omitempty"`
	From  string    `json:"from,omitempty"`
	Depth int       `json:"depth"`
	Time  time.Time `json:"time,omitzero"`
}

// SetOutcome sets the fate, which follows from the rest, and who brought the URL in.
func (x *Explanation) SetOutcome() {
	x.Fate = x.outcome()
	if x.Fate != Unknown {
		x.LinksCut = 0
	}
	named := true // what is met without a page that names it is a seed
	switch {
	case x.Waits != nil:
		x.From = x.Waits.From
	case x.Page != nil && x.Page.WARC+x.Page.Type+x.Page.From != "":
		x.From = x.Page.From
	case x.Skipped != nil:
		x.From = x.Skipped.From
	case x.Merge != nil:
		x.From, named = x.Merge.From, false
	case x.Aside != nil:
		x.From, named = x.Aside.From, false
	default:
		named = false
	}
	if x.From == "" && x.First != nil {
		x.From = x.First.From
	}
	x.Seed = named && x.From == "" && x.mayBeSeed()
}

// mayBeSeed is false where a visit that was made again hides who brought the URL in.
func (x *Explanation) mayBeSeed() bool {
	answered := x.Page != nil && x.Page.Status != 0
	return (x.First != nil || !answered) && (x.Known == nil || x.Known.Depth == 0)
}

func (x *Explanation) outcome() Outcome {
	switch {
	case x.Active:
		return InFlight
	case x.Unread > 0 && x.Waits == nil:
		return Unread
	case x.Waits != nil && (x.Place == 0 || x.GivenUp != "" || !x.Running && x.Skipped.failed()):
		return Abandoned
	case x.Waits != nil && x.Waits.Tries > 0:
		return Retry
	case x.Waits != nil && x.Host != nil && x.Host.Parked:
		return Parked
	case x.Waits != nil:
		return Waiting
	case x.Page != nil:
		return x.Page.outcome(x.URL)
	case x.Skipped.failed():
		return Failed
	case x.Skipped != nil:
		return Excluded
	case x.Merge != nil:
		return Undecided
	case x.Aside != nil:
		return Deferred
	}
	if fate := x.outcomeUnseen(); !x.Reading || fate != Unaccounted && (fate != Unknown || !x.Files) {
		return fate
	}
	return Unread
}

// outcomeUnseen is the fate of what no queue and no file has.
func (x *Explanation) outcomeUnseen() Outcome {
	switch {
	case x.Known == nil && x.Scope.Rule == "scope" && !x.Scope.In:
		return OutOfScope
	case x.Claiming:
		return Claiming
	case x.Elsewhere:
		return Elsewhere
	case x.Known == nil:
		return Unknown
	case x.Place == 0 && x.Host != nil && x.Host.Waiting > maxPosition:
		return Waiting
	}
	return Unaccounted
}

const maxPosition = 10_000

func (s *Skip) failed() bool { return s != nil && s.Rule == "failed" }

func (p *Page) outcome(url string) Outcome {
	switch {
	case p.Status == 0:
		return Failed
	case p.Status >= 300 && p.Status < 400 && p.Final != "":
		return Redirected
	case p.Status >= 400:
		return Error
	case p.Revisit != "" && p.Revisit != url && p.Status < 300:
		return Duplicate
	}
	return Fetched
}
