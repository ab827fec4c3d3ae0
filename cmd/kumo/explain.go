package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/look"
	"kumo/internal/wire"
)

const explainLong = `Say what became of a URL in a crawl: whether it was met, when and where, which rule and which line of robots.txt hold for it, where
it waits and what its host waits for, when it was fetched and where its record lies, or why it was left out.` + lookLong + `

In a crawl of several nodes it also says which node owns the URL's host, since when, and, with the strategy hub, who has failed to reach it and when
it is tried again. The node that owns it knows what became of the URL: look into that node's folder. With --crawl and without --out only the
owner is asked for, from any machine that reaches the cluster.`

const explainExample = `  kumo explain https://example.com/a -o crawls/example.com
  kumo explain https://example.com/a -o crawls/news-b --join a.internal:7070 --secret-file cluster.secret
  kumo explain https://example.com/a --crawl news`

// An explainer is kumo explain.
type explainer struct {
	lookup
	clusterFlags
	dir  string
	self string // the identity of the node whose folder it is
}

func explainCommand() *cobra.Command {
	e := &explainer{}
	cmd := &cobra.Command{Use: "explain URL", Short: "Say why a URL was, or was not, crawled", Long: explainLong, Example: explainExample, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e.ctx, e.w = cmd.Context(), cmd.OutOrStdout()
			return e.run(cmd.ErrOrStderr(), args[0])
		}}
	f := cmd.Flags()
	f.StringVarP(&e.dir, "out", "o", "", "the crawl's `FOLDER` (needed without --crawl)")
	f.BoolVar(&e.json, "json", false, "answer in JSON")
	e.bindCommand(f)
	f.Lookup("crawl").Usage = "the `NAME` of a crawl of several nodes (default: that of the folder, if it is a node's)"
	f.SortFlags = false
	return cmd
}

// run says what the folder knows of the URL, and what the cluster knows of its host.
func (e *explainer) run(stderr io.Writer, url string) (err error) {
	u, err := wire.ParseURL(url)
	if err != nil {
		return err
	}
	if e.dir == "" && e.crawl == "" {
		return usagef("which crawl? name its folder with --out, or a crawl of several nodes with --crawl")
	}
	x := &explained{URL: u.String()}
	host := u.Canonical().Host()
	if e.dir != "" {
		if x.Explanation, err = e.folder(u.String()); err != nil {
			return err
		}
		x.URL = x.Explanation.URL
		if u, err = wire.ParseURL(x.URL); err == nil { // as the crawl has it
			host = u.Canonical().Host()
		}
	}
	if err := e.askOwner(stderr, x, host); err != nil {
		return err
	}
	if e.json {
		return e.printJSON(x)
	}
	return printExplained(e.w, x)
}

// folder is what the crawl in the folder knows.
func (e *explainer) folder(url string) (x *look.Explanation, err error) {
	if e.look, err = openLook(e.ctx, e.dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.look.Close()) }()
	return e.look.Explain(e.ctx, url)
}

// askOwner asks the cluster whose the host is, if the user names one, or the folder is a node's. Then that it cannot be asked is no error.
func (e *explainer) askOwner(stderr io.Writer, x *explained, host string) (err error) {
	named := e.crawl != "" || e.nats != "" || len(e.join) > 0
	if e.dir != "" {
		if e.self, err = wire.FolderNode(e.dir); err != nil {
			return err
		}
		if e.self == "" && named {
			return usagef("%s is the folder of a crawl of one node alone, which no cluster knows of", e.dir)
		}
		if e.self == "" {
			return nil
		}
		if err := e.crawlOf(); err != nil {
			return err
		}
	}
	x.asked = true
	if !named {
		e.wait = min(e.wait, shortWait)
		if err := somebody(defaultAddress); err != nil {
			x.unasked = err
			return nil
		}
	}
	err = e.control(e.ctx, stderr, func(_ context.Context, control *wire.Control) (err error) {
		x.Owner, err = control.Owner(e.ctx, host, e.self, e.wait)
		return err
	})
	if err != nil && !named {
		x.unasked = err
		return nil
	}
	return wire.Advise(err)
}

// crawlOf finds out the name of the crawl that the folder belongs to.
func (e *explainer) crawlOf() error {
	saved, err := wire.SavedSettings(e.dir)
	for _, s := range saved {
		if name := strings.Join(s.Values, ","); s.Key == "name" && e.crawl == "" {
			e.crawl = name
		} else if s.Key == "name" && e.crawl != name {
			return usagef("%s belongs to the crawl %q, not to %q", e.dir, name, e.crawl)
		}
	}
	return err
}

// shortWait is how long is waited for a cluster that nobody has named.
const shortWait = 4 * time.Second

// somebody returns an error if nobody listens at an address of this machine.
func somebody(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return fmt.Errorf("no node with a server is at %s", address)
	}
	return c.Close()
}

// explained is what is known of a URL in the folder, if one was named, and of its host in the cluster, if there is one.
type explained struct {
	URL string `json:"url"`
	*look.Explanation
	Owner *look.Owned `json:"owner,omitempty"`

	asked   bool
	unasked error // why the cluster was not asked
}

// fate is the URL's, in view of whose its host is.
func (x *explained) fate() string {
	o, fate := x.Owner, x.Explanation.Fate
	switch {
	case o != nil && !o.Here && fate == look.Unknown:
		return "not known here: another node owns its host"
	case o != nil && o.Here && o.State == look.HostParked && fate == look.Waiting:
		return "waiting: no node reaches its host"
	}
	return fateLine(x.Explanation)
}

func printExplained(w io.Writer, x *explained) error {
	s := sheet{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	s.row("url", "%s", x.URL)
	if x.Explanation != nil {
		s.explanation(x.Explanation, x.fate())
	}
	if x.asked {
		s.owner(x)
	}
	return s.Flush()
}

// owner says whose the host is.
func (s sheet) owner(x *explained) {
	o := x.Owner
	switch {
	case x.unasked != nil:
		s.row("owner", "not known: %v: name one with --join, and the cluster's secret with --secret-file", x.unasked)
		return
	case o == nil:
		s.row("owner", "nobody yet: no node has met a link to its host, or it is just being found out who reaches it")
		return
	case o.Gone:
		s.row("owner", "%s, which is no member any more: others take over what it had", o.Node)
	case o.Here:
		s.row("owner", "%s, this node%s", o.Owner, ownedSince(o))
	default:
		s.row("owner", "%s%s", o.Owner, ownedSince(o))
	}
	if o.State != look.HostReached || o.Rounds > 0 {
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

func ownedSince(o *look.Owned) string {
	if o.Since.IsZero() {
		return ""
	}
	return ", since " + when(o.Since)
}

// A sheet prints rows of a name and what there is to say.
type sheet struct{ *tabwriter.Writer }

func (s sheet) row(name, format string, args ...any) {
	fmt.Fprintf(s, "%s\t%s\n", name, fmt.Sprintf(format, args...))
}

// explanation says what a crawl's folder knows.
func (s sheet) explanation(x *look.Explanation, fate string) {
	s.row("fate", "%s", fate)
	s.met(x)
	if x.Scope.In {
		s.row("rules", "let it in: %s", x.Scope.Why)
	} else {
		s.row("rules", "%s: %s", x.Scope.Rule, x.Scope.Why)
	}
	switch {
	case x.Robots != nil:
		s.row("robots", "%s", robotsLine(x.Robots))
	case x.Host != nil:
		s.row("robots", "not known: the host's robots.txt was not had")
	}
	s.waits(x)
	s.left(x)
	if x.Page != nil {
		s.page(x.Page)
	}
	if x.Known != nil && !x.Known.Due.IsZero() {
		s.row("due", "again at %s", when(x.Known.Due))
	}
}

// fateWords say more of fates that do not speak for themselves.
var fateWords = map[look.Fate]string{
	look.OutOfScope:  "links to it are only counted, by host",
	look.Unknown:     "no page within reach has linked to it",
	look.Parked:      "its host's robots.txt comes first",
	look.Undecided:   "it may have been met before: the next merge of known URLs tells",
	look.GivenUp:     "with its host, until the next run",
	look.SetAside:    "a better link may still bring it in",
	look.Unaccounted: "it is just going from one place to another: ask again",
}

func fateLine(x *look.Explanation) string {
	if words := fateWords[x.Fate]; words != "" {
		return string(x.Fate) + ": " + words
	}
	return string(x.Fate)
}

// met says since when the URL is known, and from where.
func (s sheet) met(x *look.Explanation) {
	switch {
	case x.Known == nil:
		s.row("known", "no")
		return
	case x.Known.State == "left out":
		s.row("known", "since %s, and left out so far", when(x.Known.Since))
	default:
		s.row("known", "since %s, at depth %d", when(x.Known.Since), x.Known.Depth)
	}
	if x.Seed {
		s.row("from", "the user: it is a seed")
	} else if x.From != "" {
		s.row("from", "%s", x.From)
	}
}

func robotsLine(r *look.Robots) string {
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
	return fmt.Sprintf("%s %s%s (of %s)", r.File, verdict, by, when(r.Time))
}

// waits says where the URL waits, and how its host stands.
func (s sheet) waits(x *look.Explanation) {
	switch it := x.Waits; {
	case x.Active:
		s.row("waits", "not any more: it is being visited, for the %d. time", it.Tries+1)
	case it == nil && x.Fate == look.Waiting:
		s.row("waits", "behind the first 10,000 of %d of its host", x.Host.Waiting)
	case it == nil:
	case x.Place > 0:
		s.row("waits", "at place %d of %d of its host, tried %d times", x.Place, x.Host.Waiting, it.Tries)
	default:
		s.row("waits", "for the next run, tried %d times", it.Tries)
	}
	if x.GivenUp != "" {
		s.row("given up", "%s", x.GivenUp)
	}
	h := x.Host
	if h == nil {
		return
	}
	why := h.For
	if why == "" {
		why = "it has nothing that waits"
	}
	s.row("host", "%d URLs wait; next not before %s (%s); delay %v; %d failures in a row", h.Waiting, when(h.Next), why, h.Delay, h.Failures)
	if h.CrawlDelay > 0 {
		s.row("", "its robots.txt asks for a delay of %v", h.CrawlDelay)
	}
	if h.Most > 0 {
		s.row("", "it has given %d of the %d pages that a host may give", h.Pages, h.Most)
	}
}

// left says why the URL was left out, or may be.
func (s sheet) left(x *look.Explanation) {
	if m := x.Merge; m != nil {
		s.row("merge", "takes it in, if it was not met before%s", except(m))
	}
	if a := x.Aside; a != nil && x.Fate == look.SetAside {
		s.row("set aside", "%s by %s: %s", when(a.Time), a.Rule, a.Why)
	}
	if k := x.Skipped; k != nil && (x.Page == nil || x.Page.Status == 0) {
		s.row("left out", "%s by %s: %s", when(k.Time), k.Rule, k.Why)
	}
}

func except(m *look.Skip) string {
	if m.Rule == "" {
		return ""
	}
	return ", and then sets it aside by " + m.Rule
}

func (s sheet) page(p *look.Page) {
	if p.Status == 0 {
		s.row("tried", "%s, without an answer", when(p.Time))
		return
	}
	if p.Type == "" {
		s.row("fetched", "%s, status %d", when(p.Time), p.Status)
	} else {
		s.row("fetched", "%s, status %d, %s, %d bytes", when(p.Time), p.Status, p.Type, p.Bytes)
	}
	if p.Recrawl != "" {
		s.row("recrawl", "%s", p.Recrawl)
	}
	if p.Final != "" {
		s.row("leads to", "%s", p.Final)
	}
	if p.Digest != "" {
		s.row("digest", "%s", p.Digest)
	}
	if p.Revisit != "" {
		s.row("same as", "%s: its record has the bytes, this one refers to it", p.Revisit)
	}
	if p.WARC != "" {
		s.row("record", "warc/%s at byte %d", p.WARC, p.Offset)
	}
}
