package synthweb

// A Kind is the kind of resource that a Ref denotes. All kinds except Page and those without a number (Robots, Unknown)
// are companions of the page with the same number.
type Kind uint8

// The kinds.
const (
	Page     Kind = iota
	Hop           // redirect to its page; the parent links to it instead of the page
	Hop2          // redirect to Hop; the parent links to it
	Hop3          // redirect to Hop2; the parent links to it
	Refresh       // page with a meta refresh to its page; the parent links to it
	Out           // redirect to another host's front page
	Loop          // redirect to LoopBack
	LoopBack      // redirect to Loop
	Gone          // 404 or 410
	Private       // page forbidden by robots.txt
	Script        // page forbidden by a pattern in robots.txt, *.cgi$
	Open          // page in a forbidden directory that robots.txt allows
	Lure          // redirect to Private
	Flaky         // page that answers 503 to the first request
	Cut           // page whose connection is closed before the end of the body
	Large         // page of Config.LargeSize bytes
	Copy          // copy of its page, byte for byte
	Session       // page with a session ID; four of them are identical
	Frame         // page in an iframe
	Ghost         // page whose address occurs only in comments and scripts; must not be fetched
	Image         // PNG
	Style         // style sheet
	Code          // JavaScript
	Calendar      // month of an endless calendar on hosts with trait Trap; the number is the month
	Robots        // the host's robots.txt
	Unknown       // none of the above: 404
	Data          // content of a page that needs script, in JSON
	App           // script that builds the pages of a host
	numKinds
)

// via describes how a page leads to its companion of a kind.
type via uint8

const (
	byLink  via = iota // by an ordinary link on the page
	byTree             // linked by the page's parent, instead of the page
	byEmbed            // embedded in the page
	byFrame
	byStealth // named only in text that is not a link
	byNothing // linked from elsewhere
)

type kindInfo struct {
	name   string
	dir    string // path up to the last slash; it identifies the kind of every companion
	suffix string // end of the path, after the number
	via    via
	barred bool // forbidden by robots.txt
}

var kinds = [numKinds]kindInfo{
	Page:     {name: "page", via: byNothing},
	Hop:      {name: "redirect", dir: "/go/", via: byTree},
	Hop2:     {name: "redirect2", dir: "/go/2/", via: byTree},
	Hop3:     {name: "redirect3", dir: "/go/3/", via: byTree},
	Refresh:  {name: "refresh", dir: "/moved/", suffix: ".html", via: byTree},
	Out:      {name: "out", dir: "/out/"},
	Loop:     {name: "loop", dir: "/loop/"},
	LoopBack: {name: "loopback", dir: "/loop/back/", via: byNothing},
	Gone:     {name: "gone", dir: "/gone/", suffix: ".html"},
	Private:  {name: "private", dir: "/private/", suffix: ".html", barred: true},
	Script:   {name: "script", dir: "/tools/", suffix: ".cgi", barred: true},
	Open:     {name: "open", dir: "/private/open/", suffix: ".html"},
	Lure:     {name: "lure", dir: "/lure/"},
	Flaky:    {name: "flaky", dir: "/flaky/", suffix: ".html"},
	Cut:      {name: "cut", dir: "/cut/", suffix: ".html"},
	Large:    {name: "large", dir: "/large/", suffix: ".html"},
	Copy:     {name: "copy", dir: "?"},
	Session:  {name: "session", dir: "/shop/"},
	Frame:    {name: "frame", dir: "/frame/", suffix: ".html", via: byFrame},
	Ghost:    {name: "ghost", dir: "/ghost/", suffix: ".html", via: byStealth},
	Image:    {name: "image", dir: "/img/", suffix: ".png", via: byEmbed},
	Style:    {name: "style", dir: "/css/", suffix: ".css", via: byEmbed},
	Code:     {name: "code", dir: "/js/", suffix: ".js", via: byEmbed},
	Calendar: {name: "calendar", dir: "/calendar/?month=", via: byNothing},
	Robots:   {name: "robots", via: byNothing},
	Unknown:  {name: "unknown", via: byNothing},
	Data:     {name: "data", dir: "/data/", suffix: ".json", via: byNothing},
	App:      {name: "app", dir: "/app/", suffix: ".js", via: byNothing},
}

func (k Kind) String() string { return kinds[k].name }

var kindOfDir = func() map[string]Kind {
	m := make(map[string]Kind)
	for k, info := range kinds {
		if info.dir != "" && Kind(k) != Copy && Kind(k) != Calendar {
			m[info.dir] = Kind(k)
		}
	}
	m["/calendar/"] = Calendar
	return m
}()

// Topics of dice other than kinds. They must not change, as webs would; dice are not thrown for Data and App.
const (
	aboutPages   Kind = Unknown + 1 + iota // number of pages of a host
	aboutLatency                           // of a host
	aboutSize                              // size of a page
	aboutTongue                            // tongue of a page
	aboutLife                              // presence of a page
	aboutChange                            // changes of a page
	aboutScript                            // whether a page needs script
)

// shown returns the page whose bytes a resource has.
func (r Ref) shown() Ref {
	switch r.Kind {
	case Copy:
		r.Kind = Page
	case Session:
		r.N = r.N / 4 * 4
	}
	return r
}

// A Ref identifies a resource of a Web.
type Ref struct {
	Host uint32
	N    uint32
	Kind Kind
}
