package text

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/content/parse"
	"kumo/internal/content/policy"
	"kumo/internal/engine/crawl"
)

// A sheet prints rows with a name and a value.
type sheet struct{ *tabwriter.Writer }

func (s sheet) row(name, format string, args ...any) {
	fmt.Fprintf(s, "%s\t%s\n", name, fmt.Sprintf(format, args...))
}

// rowIf prints a row if its value is not empty.
func (s sheet) rowIf(name, format, value string) {
	if value != "" {
		s.row(name, format, value)
	}
}

// printExplanation prints the contents of a crawl's folder about a URL.
func (s sheet) printExplanation(x *inspect.Explanation, fate string) {
	s.row("fate", "%s", fate)
	if x.Unread > 0 {
		s.row("disk", "has not answered for %v: this is the state in memory", x.Unread)
	}
	s.printFound(x)
	if x.Scope.In {
		s.row("rules", "in scope: %s", x.Scope.Why)
	} else {
		s.row("rules", "%s: %s", x.Scope.Rule, x.Scope.Why)
	}
	switch {
	case x.Robots != nil:
		s.row("robots", "%s", robotsLine(x.Robots))
	case x.Host != nil && x.Unread == 0:
		s.row("robots", "unknown: the host's robots.txt was not available")
	}
	s.printUsage(x)
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
		s.printPage(x, x.Page)
	}
	if x.Known != nil && !x.Known.Due.IsZero() {
		s.row("due", "again at %s", Time(x.Known.Due))
	}
}

// outcomeText explains outcomes.
var outcomeText = map[inspect.Outcome]string{
	inspect.OutOfScope:  "links to it are only counted, by host",
	inspect.Unknown:     "no page in scope has linked to it",
	inspect.Parked:      "its host's robots.txt is requested first",
	inspect.Undecided:   "it may be known already: the next merge of known URLs decides",
	inspect.Abandoned:   "with its host, until the next run",
	inspect.Deferred:    "a better link may still admit it",
	inspect.Claiming:    "a page links to it; the nodes that remember its host must still decide whether it is new",
	inspect.Elsewhere:   "another node fetches its host",
	inspect.Unaccounted: "it is being moved between queues: try again",
}

func outcomeLine(x *inspect.Explanation) string {
	if x.Fate == inspect.Unknown && x.Files {
		return "unknown: no file mentions it: it was not found, or it is pending"
	}
	if x.LinksCut > 0 {
		return fmt.Sprintf("unknown: no link to it was read, but %s %s more links than were read (links_cut in pages.jsonl)",
			stats.Count(x.LinksCut, "pages"), stats.Either(x.LinksCut, "has", "have"))
	}
	if x.NeedsScript > 0 {
		return fmt.Sprintf("unknown: no page links to it, but %s %s nothing without JavaScript, which --render auto runs "+
			"(needs_script in pages.jsonl)", stats.Count(x.NeedsScript, "pages"), stats.Either(x.NeedsScript, "shows", "show"))
	}
	if x.Fate == inspect.Error && x.Page != nil {
		return fmt.Sprintf("error: it was fetched, with status %d", x.Page.Status)
	}
	if words := outcomeText[x.Fate]; words != "" {
		return string(x.Fate) + ": " + words
	}
	return string(x.Fate)
}

// printFound prints when and where the URL was found.
func (s sheet) printFound(x *inspect.Explanation) {
	switch {
	case x.Known == nil && x.Unread > 0:
		return
	case x.Known == nil && x.Files: // its absence is certain
	case x.Known == nil:
		s.row("known", "no")
		return
	case x.Known.State == "left out":
		s.row("known", "since %s, and excluded so far", Time(x.Known.Since))
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
	by := ": no matching line"
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

// printUsage prints the usage preferences of robots.txt for the URL, and those when it was fetched.
func (s sheet) printUsage(x *inspect.Explanation) {
	if x.Robots != nil {
		for _, line := range x.Robots.Usage {
			s.row("usage", "robots.txt, line %d: %s", line.Number, line.Text)
		}
	}
	if x.Page == nil || x.Page.Usage == nil {
		return
	}
	u := x.Page.Usage
	said := u.Uses.String()
	if said == "" {
		said = "no use that kumo knows"
	}
	s.row("usage", "when it was fetched: %s, stated in %s", said, u.Source)
	s.row("", "as written: %s", u.Raw)
	s.rowIf("", "policy: %s", u.Policy)
	s.rowIf("", "license: %s", u.License)
	s.rowIf("withheld", "its content: the site does not allow %s (--usage); the archive has it", x.Page.Withheld)
}

// printQueue prints the URL's position in its host's queue, and the state of the host.
func (s sheet) printQueue(x *inspect.Explanation) {
	switch it := x.Waits; {
	case x.Active:
		s.row("waits", "no longer: it is being visited, attempt %d", it.Tries+1)
	case it == nil && x.Fate == inspect.Waiting:
		s.row("waits", "behind the first 10,000 of %d URLs of its host", x.Host.Waiting)
	case it == nil:
	case x.Place > 0:
		s.row("waits", "at position %d of %d of its host, tried %s", x.Place, x.Host.Waiting, stats.Count(it.Tries,
			"times"))
	default:
		s.row("waits", "for the next run, tried %s", stats.Count(it.Tries, "times"))
	}
	if x.Waits != nil && x.Waits.Deferred {
		s.row("", "its pattern gave nothing new: it is queued behind the host's other URLs (kumo traps --help)")
	}
	s.rowIf("abandoned", "%s", x.GivenUp)
	h := x.Host
	if h == nil {
		return
	}
	why := h.For
	if why == "" {
		why = "no pending URLs"
	}
	if h.MaxBackoff > 0 {
		why += fmt.Sprintf(", for at most %v", h.MaxBackoff)
	}
	s.row("host", "%s; next not before %s (%s); delay %v; %s in a row", stats.Count(h.Waiting,
		"URLs")+stats.Either(h.Waiting, " waits", " wait"),
		Time(h.Next), why, h.Delay, stats.Count(h.Failures, "failures"))
	if h.Slices > 1 {
		s.row("", "as %s, one of the host's %d slices, each with a delay %d times as long and its own owner",
			h.Key, h.Slices, h.Slices)
	}
	if h.CrawlDelay > 0 {
		s.row("", "its robots.txt requests a delay of %v", h.CrawlDelay)
	}
	if h.Most > 0 {
		s.row("", "%d of at most %s fetched", h.Pages, stats.Count(h.Most, "pages"))
	}
}

// printRanking prints the URL's importance and the reasons.
func (s sheet) printRanking(x *inspect.Explanation) {
	r := x.Ranking
	if r == nil {
		return
	}
	by := ""
	switch {
	case r.ByLinks && x.Page == nil:
		by = ", by the links found so far"
	case r.ByLinks:
		by = ", by the links found so far; it has been fetched"
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
	s.row("", "so it is queued as if it were %.4g (%s: times %.4g)", r.Importance*r.Factor, said, r.Factor)
}

// printExcluded prints why the URL was excluded, or may be.
func (s sheet) printExcluded(x *inspect.Explanation) {
	if m := x.Merge; m != nil {
		except := ""
		if m.Rule != "" {
			except = ", and then defers it by " + m.Rule
		}
		s.row("merge", "admits it, if it is new%s", except)
	}
	if a := x.Aside; a != nil && x.Fate == inspect.Deferred {
		s.row("deferred", "%s by %s: %s", Time(a.Time), a.Rule, a.Why)
	}
	if k := x.Skipped; k != nil && (x.Page == nil || x.Page.Status == 0) {
		by := k.Rule + ": " + k.Why
		if strings.HasPrefix(k.Why, "filter ") && k.Rule == "vetoed" {
			by = k.Why // names the source
		}
		s.row("excluded", "%s by %s", Time(k.Time), by)
		if k.Rule == crawl.RuleTrap {
			s.row("", "kumo traps FOLDER --release PATTERN admits its pattern, kumo crawl --no-traps everything")
		}
	}
}

// needsScriptText explains the signs by which pages were recognized that show nothing without script.
var needsScriptText = map[page.ScriptNeed]string{
	page.ScriptRoot:   "a script renders the page into an element that is empty",
	page.ScriptPlea:   "it asks to enable JavaScript",
	page.ScriptAlone:  "it has scripts and hardly any text",
	page.ScriptLeaves: "a script loads another page",
}

// linksCutText explains the limits that leave links unread.
var linksCutText = map[page.LinksCut]string{
	page.ByMemory:  "all of them need more memory than the crawl has for a page's links; see --memory",
	page.ByEntries: "a sitemap or feed may have 50,000 entries",
	page.ByLength:  "only the beginning of a decompressed body is read",
}

func (s sheet) printPage(x *inspect.Explanation, p *inspect.Page) {
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
	s.printScript(x, p)
	s.printDocument(p.Document)
	if p.WARC != "" {
		s.row("record", "warc/%s at byte %d", p.WARC, p.Offset)
	}
}

// printDocument prints the type and length of a document, and why its text is incomplete.
func (s sheet) printDocument(d *page.Document) {
	if d == nil {
		return
	}
	about := d.Type
	if d.Pages > 0 {
		about += ", " + stats.Count(int64(d.Pages), "pages")
	}
	if d.WhyNot != "" {
		about += "; not all of its text could be read: " + d.WhyNot + ": " + d.Detail
	}
	s.row("document", "%s", about)
}

// printScript prints whether the page was rendered, and why not.
func (s sheet) printScript(x *inspect.Explanation, p *inspect.Page) {
	need := needsScriptText[page.ScriptNeed(p.NeedsScript)]
	isPage := p.Status == http.StatusOK && parse.IsHTML(p.Type)
	ended := func(kind string) bool { return slices.Contains(x.RenderingEnded, kind) }
	switch {
	case p.Rendered && need != "":
		s.row("script", "rendered, as the page shows nothing without JavaScript: %s", need)
	case p.Rendered:
		s.row("script", "rendered: a browser has run the page's scripts")
	case need != "" && x.Render == "":
		s.row("script", "the page shows nothing without JavaScript, which --render auto runs: %s", need)
	case need != "" && ended(crawl.ShellPages):
		s.row("script", "not rendered, though the page shows nothing without JavaScript: of the host, rendering %s gained "+
			"nothing", crawl.ShellPages)
	case need != "":
		s.row("script", "not rendered, though the page shows nothing without JavaScript: the browser failed (see the log), "+
			"or the page was fetched before --render")
	case isPage && x.Render == string(policy.RenderAuto) && ended(crawl.OtherPages):
		s.row("script", "not rendered: of the host, rendering %s gained nothing", crawl.OtherPages)
	case isPage && x.Render == string(policy.RenderAuto):
		s.row("script", "not rendered: the page shows text without JavaScript")
	case isPage && x.Render != "":
		s.row("script", "not rendered: the browser failed (see the log), or the page was fetched before --render")
	}
}

// An Explained URL contains the contents of a crawl's folder about a URL, if a folder is given, and the node that owns
// its host, if there is a cluster.
type Explained struct {
	URL string `json:"url"`
	*inspect.Explanation
	Owner *inspect.Owned `json:"owner,omitempty"`
	Links *inspect.Links `json:"links,omitempty"` // if the host has no owner

	Strategy       string `json:"-"`
	ClusterQueried bool   `json:"-"` // whether the cluster was queried
	ClusterErr     error  `json:"-"` // why the cluster could not be queried
}

// outcome returns the URL's outcome, taking the owner of its host into account.
func (x *Explained) outcome() string {
	o, fate := x.Owner, x.Explanation.Fate
	switch {
	case x.Links != nil && x.Links.Links > 0 && fate == inspect.Unknown:
		return "unknown here: no node is assigned to its host yet"
	case o != nil && !o.Here && fate == inspect.Unknown:
		return "unknown here: another node owns its host"
	case o != nil && o.Here && o.State == inspect.HostParked && fate == inspect.Waiting:
		return "waiting: no node can reach its host"
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
		s.row("owner", "unknown: %v: give a node with --join, and the cluster's secret with --secret-file",
			x.ClusterErr)
		return
	case o == nil:
		s.printNoOwner(x)
		return
	case o.Gone:
		s.row("owner", "%s, which has left: other nodes take over its hosts", o.Node)
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
		s.row("", "for the URL's outcome on that node, run kumo explain with its folder, on its machine%s", at)
	}
}

// printNoOwner prints why the host has no owner.
func (s sheet) printNoOwner(x *Explained) {
	l := x.Links
	switch {
	case l == nil || l.Links == 0:
		why := "or the nodes that can reach it are still being determined"
		if x.Strategy == admin.Balance {
			why = "or the master is about to decide"
		}
		s.row("owner", "none yet: no node has found a link to it, %s", why)
	case x.Strategy == admin.Balance:
		s.row("owner", "none yet: the master assigns the host when a node has little work left")
	default:
		s.row("owner", "none yet: the nodes that can reach it are still being determined")
	}
	if l != nil && l.Links > 0 {
		s.row("", "%s to it %s on %s", stats.Count(l.Links, "links"), stats.Either(l.Links, "waits", "wait"),
			stats.Count(l.Nodes, "nodes"))
	}
	if l != nil && l.Silent > 0 {
		s.row("", "%s not reported whether they have pending links", stats.Count(l.Silent,
			"nodes")+stats.Either(l.Silent, " has",
			" have"))
	}
}

func ownedSince(o *inspect.Owned) string {
	if o.Since.IsZero() {
		return ""
	}
	return ", since " + Time(o.Since)
}
