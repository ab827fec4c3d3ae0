package page

// A Kind is the type of a link.
type Kind uint8

// The kinds of link. For embeds, Kind.Embed returns true: they are parts of the page, not separate places. Journals
// store kinds as numbers, so new kinds must be appended.
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
	Form           // a form with action and no input
	Cite           // cite and longdesc, which browsers do not show as links
	Ping           // a ping, which browsers notify of clicks
	CSS            // url() in a style
	Meta           // og:url and the like
	JSONLD         // a URL in JSON-LD
	Path           // a string in a script that looks like a path
	Sitemap        // a sitemap, from robots.txt or a sitemap index
	Feed           // an entry of RSS, Atom or JSON Feed
	Text           // a URL in plain text
	Listed         // an entry of a sitemap
	numKinds
)

// kinds has the name of each kind and its letter in a discovery path.
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

// ParseKind returns the kind with the given name, as [Kind.String] returns it.
func ParseKind(name string) (Kind, bool) {
	for k := range kinds {
		if kinds[k].name == name {
			return Kind(k), true
		}
	}
	return 0, false
}

// Embed reports whether the link is part of the page that contains it.
func (k Kind) Embed() bool { return k.Hop() == 'E' }

// Hop returns the kind's letter in a discovery path, as in Heritrix: L link, R redirect, E embed, M sitemap; 0 for a
// seed.
func (k Kind) Hop() byte {
	if k < numKinds {
		return kinds[k].hop
	}
	return 'E' // a kind of a later version: treated as an embed
}
