package synthweb

// A Kind is what sort of resource a Ref is. All but Page and those without a number of their own (Robots, Unknown) are
// companions of the page with the same number.
type Kind uint8

// The kinds.
const (
	Page     Kind = iota
	Hop           // redirect to its page; the parent names it in the page's stead
	Hop2          // redirect to Hop, in the same role
	Hop3          // redirect to Hop2, in the same role
	Refresh       // page with a meta refresh to its page, in the same role
	Out           // redirect to another host's front page
	Loop          // redirect to LoopBack
	LoopBack      // redirect to Loop
	Gone          // 404 or 410
	Private       // page that robots.txt forbids
	Script        // page that robots.txt forbids by a pattern, *.cgi$
	Open          // page that robots.txt allows within what it forbids
	Lure          // redirect to Private
	Flaky         // page that answers 503 the first time
	Cut           // page whose connection ends before its body does
	Large         // page of Config.LargeSize bytes
	Copy          // its page once more, byte for byte
	Session       // page under a session id; four of them have the same bytes
	Frame         // page in an iframe
	Ghost         // page whose address stands only in comments and scripts; not to be fetched
	Image         // PNG
	Style         // style sheet
	Code          // JavaScript
	Calendar      // month of an endless calendar on hosts of trait Trap; the number is the month
	Robots        // the host's robots.txt
	Unknown       // none of the above: 404
	numKinds
)

// via says how a page leads to its companion of a kind.
type via uint8

const (
	byLink  via = iota // from an ordinary link on the page
	byTree             // from the page's parent, in the page's stead
	byEmbed            // as a part of the page
	byFrame
	byStealth // only by words that are not links
	byNothing // from elsewhere
)

type kindInfo struct {
	name   string
	dir    string // path up to the last slash; every companion's kind can be told by it
	suffix string // of the path, after the number
	via    via
	barred bool // robots.txt forbids it
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

// Topics that dice are thrown about besides the kinds.
const (
	aboutPages   Kind = numKinds + iota // how many pages a host has
	aboutLatency                        // of a host
	aboutSize                           // of a page
	aboutTongue                         // of a page
	aboutLife                           // of a page: whether it is there
	aboutChange                         // of a page
)

// shown is the page whose bytes a resource has.
func (r Ref) shown() Ref {
	switch r.Kind {
	case Copy:
		r.Kind = Page
	case Session:
		r.N = r.N / 4 * 4
	}
	return r
}

// A Ref names one resource of a Web.
type Ref struct {
	Host uint32
	N    uint32
	Kind Kind
}
