package page

import "testing"

// Journals and discovery paths depend on these values.
func TestKinds(t *testing.T) {
	for number, want := range []struct {
		kind Kind
		name string
		hop  byte
	}{
		{Seed, "seed", 0}, {Anchor, "a", 'L'}, {Alternate, "link", 'L'}, {Canonical, "canonical", 'L'}, {Frame, "frame", 'L'},
		{Refresh, "refresh", 'L'}, {Redirect, "redirect", 'R'}, {Header, "header", 'L'}, {Image, "img", 'E'},
		{Media, "media", 'E'},
		{Script, "script", 'E'}, {Style, "style", 'E'}, {Resource, "resource", 'E'}, {Object, "object", 'E'},
		{Form, "form", 'L'},
		{Cite, "cite", 'L'}, {Ping, "ping", 'E'}, {CSS, "css", 'E'}, {Meta, "meta", 'L'}, {JSONLD, "jsonld", 'L'},
		{Path, "path", 'L'},
		{Sitemap, "sitemap", 'M'}, {Feed, "feed", 'L'}, {Text, "text", 'L'}, {Listed, "listed", 'M'},
		{numKinds, "unknown", 'E'},
	} {
		k := Kind(number)
		if k != want.kind || k.String() != want.name || k.Hop() != want.hop || k.Embed() != (want.hop == 'E') {
			t.Errorf("%d: %s, hop %q, embed %v; want %v", k, k, k.Hop(), k.Embed(), want)
		}
	}
}
