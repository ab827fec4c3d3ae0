package page

// A Kind says what sort of reference a link is.
type Kind uint8

// The kinds of link. Those for which Embed is true are parts of the page rather than places to go. Journals keep kinds
// as numbers, so a new one goes to the end.
const (
	Seed      Kind = iota
	Anchor         // a, area
	Alternate      // link that names another document: rel alternate, next, prev, ...
	Canonical      // link rel=canonical
	Frame          // frame, iframe
	Refresh        // meta refresh, Refresh header
	Redirect       // Location header
	Header         // Link header
	Image          // img, source in picture, input type=image, svg image and use, og:image, background
	Media          // audio, video, track, source, og:video
	Script         // script src
	Style          // link rel=stylesheet, @import
	Resource       // link rel=icon, manifest, preload, ...
	Object         // embed, object, applet
	Form           // form that sends nothing but the request for its action
	Cite           // cite and longdesc, which no browser shows as links
	Ping           // a ping, which a browser tells that a link was followed
	CSS            // url() in a style
	Meta           // og:url and the like
	JSONLD         // a URL in JSON-LD
	Path           // what looks like a path in a script
	Sitemap        // a sitemap, named by robots.txt or an index of sitemaps
	Feed           // an entry of RSS, Atom, JSON feed
	Text           // a URL in plain text
	Listed         // an entry of a sitemap
	numKinds
)

// kinds has each kind's name and its letter in a discovery path.
var kinds = [numKinds]struct {
	name string
	hop  byte
}{
	Seed: {"seed", 0}, Anchor: {"a", 'L'}, Alternate: {"link", 'L'}, Canonical: {"canonical", 'L'}, Frame: {"frame", 'L'},
	Refresh: {"refresh", 'L'}, Redirect: {"redirect", 'R'}, Header: {"header", 'L'}, Image: {"img", 'E'},
	Media:  {"media", 'E'},
	Script: {"script", 'E'}, Style: {"style", 'E'}, Resource: {"resource", 'E'}, Object: {"object", 'E'},
	Form: {"form", 'L'},
	Cite: {"cite", 'L'}, Ping: {"ping", 'E'}, CSS: {"css", 'E'}, Meta: {"meta", 'L'}, JSONLD: {"jsonld", 'L'},
	Path:    {"path", 'L'},
	Sitemap: {"sitemap", 'M'}, Feed: {"feed", 'L'}, Text: {"text", 'L'}, Listed: {"listed", 'M'},
}

func (k Kind) String() string {
	if k < numKinds {
		return kinds[k].name
	}
	return "unknown"
}

// ParseKind is the kind of a name that [Kind.String] gives.
func ParseKind(name string) (Kind, bool) {
	for k := range kinds {
		if kinds[k].name == name {
			return Kind(k), true
		}
	}
	return 0, false
}

// Embed reports whether the reference is part of the page that names it.
func (k Kind) Embed() bool { return k.Hop() == 'E' }

// Hop is the kind's letter in a discovery path, as Heritrix writes it: L link, R redirect, E embed, M by a sitemap; a
// seed has none (0).
func (k Kind) Hop() byte {
	if k < numKinds {
		return kinds[k].hop
	}
	return 'E' // of a later version: not a place to go
}
