package text

import (
	"io"
	"text/tabwriter"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/base/stats"
)

// An Explained URL is what a crawl's folder contains about it, if one is named, and which node of the cluster owns its
// host, if there is a cluster.
type Explained struct {
	URL string `json:"url"`
	*inspect.Explanation
	Owner *inspect.Owned `json:"owner,omitempty"`
	Links *inspect.Links `json:"links,omitempty"` // where the host is nobody's

	Strategy string `json:"-"`
	Asked    bool   `json:"-"` // the cluster
	Unasked  error  `json:"-"` // why the cluster could not be asked
}

// fate returns the URL's fate, considering the owner of its host.
func (x *Explained) fate() string {
	o, fate := x.Owner, x.Explanation.Fate
	switch {
	case x.Links != nil && x.Links.Links > 0 && fate == inspect.Unknown:
		return "not known here: it is not decided which node is to fetch its host"
	case o != nil && !o.Here && fate == inspect.Unknown:
		return "not known here: another node owns its host"
	case o != nil && o.Here && o.State == inspect.HostParked && fate == inspect.Waiting:
		return "waiting: no node reaches its host"
	}
	return fateLine(x.Explanation)
}

// Explain prints an explained URL.
func Explain(w io.Writer, x *Explained) error {
	s := sheet{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	s.row("url", "%s", x.URL)
	if x.Explanation != nil {
		s.explanation(x.Explanation, x.fate())
	}
	if x.Asked {
		s.owner(x)
	}
	return s.Flush()
}

// owner prints the owner of the host.
func (s sheet) owner(x *Explained) {
	o := x.Owner
	switch {
	case x.Unasked != nil:
		s.row("owner", "not known: %v: name one with --join, and the cluster's secret with --secret-file", x.Unasked)
		return
	case o == nil:
		s.nobody(x)
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

// nobody prints why the host has no owner.
func (s sheet) nobody(x *Explained) {
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
