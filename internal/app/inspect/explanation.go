package inspect

import (
	"time"

	"kumo/internal/base/page"
	"kumo/internal/content/policy"
	"kumo/internal/content/robots"
)

// An Explanation describes the state and history of one URL. Unknown and inapplicable parts are empty.
type Explanation struct {
	URL     string  `json:"url"` // in the crawl's canonical form
	Fate    Outcome `json:"fate"`
	Running bool    `json:"running"` // the crawl is running
	// Only the crawl's files are available, not its state; the rest is unknown.
	Files bool `json:"files_only,omitempty"`
	// Nanoseconds for which the disk has not answered; its data is missing here.
	Unread time.Duration `json:"unread,omitempty"`
	// The crawl's files are being indexed for the first time; their data may still be missing.
	Reading bool   `json:"reading,omitempty"`
	Known   *Known `json:"known,omitempty"`
	From    string `json:"from,omitempty"` // the page with the link by which it was found
	Seed    bool   `json:"seed,omitempty"` // the user named it

	Scope  Scope   `json:"scope"`
	Robots *Robots `json:"robots,omitempty"`

	Waits *Item `json:"waits,omitempty"`
	// Position in its host's queue, from 1; 0 if it is being fetched, or not among the first 10,000.
	Place   int    `json:"place,omitempty"`
	Active  bool   `json:"active,omitempty"`
	Host    *Host  `json:"host,omitempty"`
	GivenUp string `json:"given_up,omitempty"` // why its host was abandoned for this run

	Claiming  bool `json:"claiming,omitempty"`  // a link to it waits for an answer of the nodes that remember its host
	Elsewhere bool `json:"elsewhere,omitempty"` // another node fetches it

	// Visits of pages with unread links; the URL may be one of them.
	LinksCut int64 `json:"links_cut,omitempty"`

	// Visits of pages that show nothing without script; they may link to the URL.
	NeedsScript int64 `json:"needs_script,omitempty"`

	// Which pages of its host are rendered: auto or always; "": none.
	Render string `json:"render,omitempty"`
	// Pages of its host that are no longer rendered in this run, as that gained neither links nor text.
	RenderingEnded []string `json:"rendering_ended,omitempty"`

	// settings that override those of the crawl, with their source
	Overrides []policy.Applied `json:"overrides,omitempty"`

	Ranking *Ranking `json:"ranking,omitempty"`

	Page *Page `json:"page,omitempty"`
	// The first visit, which names the linking page even if later visits do not.
	First   *Page `json:"-"`
	Skipped *Skip `json:"skipped,omitempty"` // its last line in skipped.jsonl
	Aside   *Skip `json:"aside,omitempty"`   // why it is deferred
	// a pending link; at the next merge, the URL is admitted if new, or deferred if Rule is set
	Merge *Skip `json:"merge,omitempty"`
}

// An Outcome is the state of a URL in a crawl.
type Outcome string

// The outcomes.
const (
	Unknown     Outcome = "unknown"       // never found
	OutOfScope  Outcome = "out of scope"  // links to it are only counted
	Waiting     Outcome = "waiting"       // in its host's queue
	Parked      Outcome = "parked"        // waits for its host's robots.txt
	Retry       Outcome = "to be retried" // visited without success
	InFlight    Outcome = "under way"     // being visited
	Undecided   Outcome = "undecided"     // possibly known: the next merge of known URLs decides
	Fetched     Outcome = "fetched"
	Redirected  Outcome = "redirected"     // fetched, redirects elsewhere
	Duplicate   Outcome = "duplicate"      // a page with the same content as an earlier one, which its record refers to
	Error       Outcome = "error"          // fetched with an error status
	Failed      Outcome = "failed"         // permanently
	Abandoned   Outcome = "given up"       // with its host, until the next run
	Deferred    Outcome = "set aside"      // by a rule on links: a better link may still admit it
	Excluded    Outcome = "left out"       // by a rule
	Unaccounted Outcome = "in between"     // known, but currently in no file or queue
	Claiming    Outcome = "being claimed"  // a link to it waits for an answer of the nodes that remember its host
	Elsewhere   Outcome = "another node's" // fetched by another node
	Unread      Outcome = "not read"       // not in memory; the disk has not answered, or files are still being indexed
)

// A Scope is the decision of the current rules on a link from a seed to the URL.
type Scope struct {
	In   bool   `json:"in"`
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// Robots is the decision of robots.txt on a URL.
type Robots struct {
	Ignored bool      `json:"ignored,omitempty"` // the crawl does not obey robots.txt
	File    string    `json:"file,omitempty"`    // after redirects
	Time    time.Time `json:"time,omitzero"`     // time of the fetch
	Allowed bool      `json:"allowed"`
	Line    int       `json:"line,omitempty"` // number of the deciding line
	Text    string    `json:"text,omitempty"` // the deciding line
	// the lines about the use of the URL
	Usage []robots.Line `json:"usage,omitempty"`
}

// A Page is a visit. Time, Status and Digest are always set; the other fields come from pages.jsonl, if there is one.
type Page struct {
	Time     time.Time `json:"time"`
	Status   int       `json:"status"` // 0: no response
	Type     string    `json:"type,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"`
	Digest   string    `json:"digest,omitempty"`
	Final    string    `json:"final,omitempty"`     // target of the redirect
	Revisit  string    `json:"revisit,omitempty"`   // URL of the record with the same payload
	LinksCut string    `json:"links_cut,omitempty"` // the limit that left links unread: memory, entries, length
	// Why the page shows nothing without script: root, noscript, empty, redirect.
	NeedsScript string `json:"needs_script,omitempty"`
	Rendered    bool   `json:"rendered,omitempty"` // a browser has run its scripts
	// Metadata of a PDF, an office document, an e-book or an image.
	Document *page.Document `json:"document,omitempty"`
	// Its usage preferences when it was fetched.
	Usage *page.Usage `json:"usage,omitempty"`
	// The use that the site does not allow; the crawl therefore stored no text of it.
	Withheld string `json:"withheld,omitempty"`
	// Result of a visit after the first: changed, unchanged, gone, trouble.
	Recrawl string `json:"recrawl,omitempty"`
	From    string `json:"from,omitempty"`
	Depth   int    `json:"depth"`
	WARC    string `json:"warc,omitempty"` // file below warc/, with ".open" appended until it is closed
	Offset  int64  `json:"offset"`
}

// A Ranking is the importance of a URL.
type Ranking struct {
	Order      string   `json:"order"`
	Importance float64  `json:"importance"`
	ByLinks    bool     `json:"by_links"`        // the order is based on links
	Rules      []string `json:"rules,omitempty"` // matching rules of --prefer
	// Factor by which the importance of a pending URL is multiplied, from the rules and the sitemap priority at the
	// time it was found; 0: none.
	Factor  float64 `json:"factor,omitempty"`
	Sitemap bool    `json:"sitemap,omitempty"` // a sitemap contributed to Factor
}

// A Skip is the reason why a URL was excluded.
type Skip struct {
	Rule  string    `json:"rule,omitempty"`
	Why   string    `json:"why,omitempty"`
	From  string    `json:"from,omitempty"`
	Depth int       `json:"depth"`
	Time  time.Time `json:"time,omitzero"`
}

// SetOutcome derives the outcome, the linking page, and whether the URL is a seed from the other fields.
func (x *Explanation) SetOutcome() {
	x.Fate = x.outcome()
	if x.Fate != Unknown {
		x.LinksCut, x.NeedsScript = 0, 0
	}
	named := true // a URL without a linking page is a seed
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

// mayBeSeed returns false if a repeated visit hides the linking page.
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

// outcomeUnseen returns the outcome of a URL that is in no queue and no file.
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
