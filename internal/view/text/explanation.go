package text

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/engine/crawl"
)

// A sheet prints rows of a name and a value.
type sheet struct{ *tabwriter.Writer }

func (s sheet) row(name, format string, args ...any) {
	fmt.Fprintf(s, "%s\t%s\n", name, fmt.Sprintf(format, args...))
}

// rowIf prints a row of a value, if there is one.
func (s sheet) rowIf(name, format, value string) {
	if value != "" {
		s.row(name, format, value)
	}
}

// printExplanation prints what a crawl's folder contains about a URL.
func (s sheet) printExplanation(x *inspect.Explanation, fate string) {
	s.row("fate", "%s", fate)
	if x.Unread > 0 {
		s.row("disk", "has not answered for %v: this is what the crawl knows without it", x.Unread)
	}
	s.printFound(x)
	if x.Scope.In {
		s.row("rules", "let it in: %s", x.Scope.Why)
	} else {
		s.row("rules", "%s: %s", x.Scope.Rule, x.Scope.Why)
	}
	switch {
	case x.Robots != nil:
		s.row("robots", "%s", robotsLine(x.Robots))
	case x.Host != nil && x.Unread == 0:
		s.row("robots", "not known: the host's robots.txt was not had")
	}
	for i, o := range x.Overrides {
		name := ""
		if i == 0 {
			name = "overrides"
		}
		s.row(name, "%s %s, by match %s", o.Setting, o.Value, o.Override)
	}
	s.printQueue(x)
	s.printRanking(x)
	s.printExcluded(x)
	if x.Page != nil {
		s.printPage(x.Page)
	}
	if x.Known != nil && !x.Known.Due.IsZero() {
		s.row("due", "again at %s", Time(x.Known.Due))
	}
}

// outcomeText explain fates.
var outcomeText = map[inspect.Outcome]string{
	inspect.OutOfScope:  "links to it are only counted, by host",
	inspect.Unknown:     "no page within reach has linked to it",
	inspect.Parked:      "its host's robots.txt comes first",
	inspect.Undecided:   "it may have been met before: the next merge of known URLs tells",
	inspect.Abandoned:   "with its host, until the next run",
	inspect.Deferred:    "a better link may still bring it in",
	inspect.Error:       "the server answered, and not with a page",
	inspect.Claiming:    "a page has a link to it, and those who remember its host are yet to say whether it is new",
	inspect.Elsewhere:   "its host is fetched there",
	inspect.Unaccounted: "it is just going from one place to another: ask again",
}

func outcomeLine(x *inspect.Explanation) string {
	if x.Fate == inspect.Unknown && x.Files {
		return "unknown: no file says anything of it: it was not met, or it waits"
	}
	if x.LinksCut > 0 {
		return fmt.Sprintf("unknown: no link to it was read, but %s %s more links than were read (links_cut in pages.jsonl)",
			stats.Count(x.LinksCut, "pages"), stats.Either(x.LinksCut, "has", "have"))
	}
	if words := outcomeText[x.Fate]; words != "" {
		return string(x.Fate) + ": " + words
	}
	return string(x.Fate)
}

// printFound prints when the URL was found, and where.
func (s sheet) printFound(x *inspect.Explanation) {
	switch {
	case x.Known == nil && x.Unread > 0:
		return
	case x.Known == nil && x.Files: // who knows it is not there
	case x.Known == nil:
		s.row("known", "no")
		return
	case x.Known.State == "left out":
		s.row("known", "since %s, and left out so far", Time(x.Known.Since))
	default:
		s.row("known", "since %s, at depth %d", Time(x.Known.Since), x.Known.Depth)
	}
	if x.Seed {
		s.row("from", "the user: it is a seed")
	} else {
		s.rowIf("from", "%s", x.From)
	}
}

func robotsLine(r *inspect.Robots) string {
	verdict := "forbids it"
	if r.Allowed {
		verdict = "allows it"
	}
	by := ": no line speaks of it"
	switch {
	case r.Ignored:
		return "not asked"
	case r.Line > 0:
		by = fmt.Sprintf(" by line %d: %s", r.Line, r.Text)
	case r.Text != "":
		by = ": " + r.Text
	}
	if r.File == "" {
		return "robots.txt " + verdict + by
	}
	return fmt.Sprintf("%s %s%s (of %s)", r.File, verdict, by, Time(r.Time))
}

// printQueue prints the URL's position in its host's queue, and the state of the host.
func (s sheet) printQueue(x *inspect.Explanation) {
	switch it := x.Waits; {
	case x.Active:
		s.row("waits", "not any more: it is being visited, for the %d. time", it.Tries+1)
	case it == nil && x.Fate == inspect.Waiting:
		s.row("waits", "behind the first 10,000 of %d of its host", x.Host.Waiting)
	case it == nil:
	case x.Place > 0:
		s.row("waits", "at place %d of %d of its host, tried %s", x.Place, x.Host.Waiting, stats.Count(it.Tries, "times"))
	default:
		s.row("waits", "for the next run, tried %s", stats.Count(it.Tries, "times"))
	}
	if x.Waits != nil && x.Waits.Deferred {
		s.row("", "its pattern brought nothing new: it goes after the host's other URLs (kumo traps --help)")
	}
	s.rowIf("given up", "%s", x.GivenUp)
	h := x.Host
	if h == nil {
		return
	}
	why := h.For
	if why == "" {
		why = "it has nothing that waits"
	}
	if h.MaxBackoff > 0 {
		why += fmt.Sprintf(", for %v at most", h.MaxBackoff)
	}
	s.row("host", "%s; next not before %s (%s); delay %v; %s in a row", stats.Count(h.Waiting,
		"URLs")+stats.Either(h.Waiting, " waits", " wait"),
		Time(h.Next), why, h.Delay, stats.Count(h.Failures, "failures"))
	if h.Slices > 1 {
		s.row("", "that is %s, one of the host's %d slices, each with a delay %d times as long and an owner of its own",
			h.Key, h.Slices, h.Slices)
	}
	if h.CrawlDelay > 0 {
		s.row("", "its robots.txt asks for a delay of %v", h.CrawlDelay)
	}
	if h.Most > 0 {
		s.row("", "it has given %d of the %s that a host may give", h.Pages, stats.Count(h.Most, "pages"))
	}
}

// printRanking prints the URL's importance and its reasons.
func (s sheet) printRanking(x *inspect.Explanation) {
	r := x.Ranking
	if r == nil {
		return
	}
	by := ""
	switch {
	case r.ByLinks && x.Page == nil:
		by = ", by the links to it that were found so far"
	case r.ByLinks:
		by = ", by the links to it that were found so far; it has been fetched"
	}
	s.row("importance", "%.4g (--order %s%s)", r.Importance, r.Order, by)
	for _, rule := range r.Rules {
		s.row("", "and --prefer '%s' matches it", rule)
	}
	if r.Factor == 0 {
		return
	}
	said := "--prefer"
	switch {
	case r.Sitemap && len(r.Rules) > 0:
		said = "--prefer and its sitemap's priority"
	case r.Sitemap:
		said = "its sitemap's priority"
	}
	s.row("", "so it waits as if that were %.4g: by %s it is %.4g times as much", r.Importance*r.Factor, said, r.Factor)
}

// printExcluded prints why the URL was filtered, or may be.
func (s sheet) printExcluded(x *inspect.Explanation) {
	if m := x.Merge; m != nil {
		except := ""
		if m.Rule != "" {
			except = ", and then sets it aside by " + m.Rule
		}
		s.row("merge", "takes it in, if it was not met before%s", except)
	}
	if a := x.Aside; a != nil && x.Fate == inspect.Deferred {
		s.row("set aside", "%s by %s: %s", Time(a.Time), a.Rule, a.Why)
	}
	if k := x.Skipped; k != nil && (x.Page == nil || x.Page.Status == 0) {
		by := k.Rule + ": " + k.Why
		if strings.HasPrefix(k.Why, "filter ") && k.Rule == "vetoed" {
			by = k.Why // which names who says so
		}
		s.row("left out", "%s by %s", Time(k.Time), by)
		if k.Rule == crawl.RuleTrap {
			s.row("", "kumo traps FOLDER --release PATTERN lets in its pattern, kumo crawl --no-traps everything")
		}
	}
}

// linksCutText names the limits that leave links unread.
var linksCutText = map[page.LinksCut]string{
	page.ByMemory:  "all of them need more memory than the crawl has for a page's links; see --memory",
	page.ByEntries: "a sitemap or feed may have 50,000 entries",
	page.ByLength:  "of an unpacked body only the beginning is read",
}

func (s sheet) printPage(p *inspect.Page) {
	if p.Status == 0 {
		s.row("tried", "%s, without an answer", Time(p.Time))
		return
	}
	if p.Type == "" {
		s.row("fetched", "%s, status %d", Time(p.Time), p.Status)
	} else {
		s.row("fetched", "%s, status %d, %s, %s", Time(p.Time), p.Status, p.Type, stats.Count(p.Bytes, "bytes"))
	}
	s.rowIf("recrawl", "%s", p.Recrawl)
	s.rowIf("leads to", "%s", p.Final)
	s.rowIf("digest", "%s", p.Digest)
	s.rowIf("same as", "%s: its record has the bytes, this one refers to it", p.Revisit)
	s.rowIf("links", "only the first were read: %s", linksCutText[page.LinksCut(p.LinksCut)])
	if p.WARC != "" {
		s.row("record", "warc/%s at byte %d", p.WARC, p.Offset)
	}
}

// An Explained URL is what a crawl's folder contains about it, if one is named, and which node of the cluster owns its
// host, if there is a cluster.
type Explained struct {
	URL string `json:"url"`
	*inspect.Explanation
	Owner *inspect.Owned `json:"owner,omitempty"`
	Links *inspect.Links `json:"links,omitempty"` // where the host is nobody's

	Strategy       string `json:"-"`
	ClusterQueried bool   `json:"-"` // the cluster
	ClusterErr     error  `json:"-"` // why the cluster could not be asked
}

// outcome returns the URL's fate, considering the owner of its host.
func (x *Explained) outcome() string {
	o, fate := x.Owner, x.Explanation.Fate
	switch {
	case x.Links != nil && x.Links.Links > 0 && fate == inspect.Unknown:
		return "not known here: it is not decided which node is to fetch its host"
	case o != nil && !o.Here && fate == inspect.Unknown:
		return "not known here: another node owns its host"
	case o != nil && o.Here && o.State == inspect.HostParked && fate == inspect.Waiting:
		return "waiting: no node reaches its host"
	}
	return outcomeLine(x.Explanation)
}

// Explain prints an explained URL.
func Explain(w io.Writer, x *Explained) error {
	s := sheet{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	s.row("url", "%s", x.URL)
	if x.Explanation != nil {
		s.printExplanation(x.Explanation, x.outcome())
	}
	if x.ClusterQueried {
		s.printOwner(x)
	}
	return s.Flush()
}

// printOwner prints the owner of the host.
func (s sheet) printOwner(x *Explained) {
	o := x.Owner
	switch {
	case x.ClusterErr != nil:
		s.row("owner", "not known: %v: name one with --join, and the cluster's secret with --secret-file", x.ClusterErr)
		return
	case o == nil:
		s.printNoOwner(x)
		return
	case o.Gone:
		s.row("owner", "%s, which is no member any more: others take over what it had", o.Node)
	case o.Here:
		s.row("owner", "%s, this node%s", o.Owner, ownedSince(o))
	default:
		s.row("owner", "%s%s", o.Owner, ownedSince(o))
	}
	if o.State != inspect.HostReached && o.State != inspect.HostGiven || o.Rounds > 0 || o.Moved {
		s.row("", "%s", stateLine(o))
	}
	if !o.Here && !o.Gone {
		at := ""
		if o.Address != "" {
			at = " (" + o.Address + ")"
		}
		s.row("", "what became of the URL that node knows: kumo explain with its folder, on its machine%s", at)
	}
}

// printNoOwner prints why the host has no owner.
func (s sheet) printNoOwner(x *Explained) {
	l := x.Links
	switch {
	case l == nil || l.Links == 0:
		why := "or it is just being found out who reaches it"
		if x.Strategy == admin.Balance {
			why = "or the master is just deciding"
		}
		s.row("owner", "nobody yet: no node has met a link to its host, %s", why)
	case x.Strategy == admin.Balance:
		s.row("owner", "nobody yet: the master gives the host away when a node is about to be done with what it has")
	default:
		s.row("owner", "nobody yet: it is just being found out who reaches it")
	}
	if l != nil && l.Links > 0 {
		s.row("", "%s to it %s on %s", stats.Count(l.Links, "links"), stats.Either(l.Links, "waits", "wait"),
			stats.Count(l.Nodes, "nodes"))
	}
	if l != nil && l.Silent > 0 {
		s.row("", "%s not said whether links wait there", stats.Count(l.Silent, "nodes")+stats.Either(l.Silent, " has",
			" have"))
	}
}

func ownedSince(o *inspect.Owned) string {
	if o.Since.IsZero() {
		return ""
	}
	return ", since " + Time(o.Since)
}
