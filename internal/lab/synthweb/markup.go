package synthweb

import (
	"bytes"
	"html"
	"strconv"

	"kumo/internal/lab/dice"
)

// A writer generates the HTML of a page. It is reused for other pages.
type writer struct {
	body
	w      *Web
	port   int
	from   Ref
	host   *host
	tongue *tongue   // tongue of the page
	d      dice.Dice // random numbers for the page's layout
	odd    bool
	base   []byte // directory that relative addresses refer to
	links  []link
	addr   []byte // scratch space for an address
}

// begin prepares for the page at r.
func (t *writer) begin(r Ref) {
	t.from, t.host, t.tongue = r, &t.w.hosts[r.Host], t.w.tongue(r)
	t.d = t.w.cfg.dice(r.Host, r.Kind, r.N) + 1 // a different stream from that of the links
	t.odd = t.d.Chance(t.w.cfg.Odd) && t.tongue == t.host.tongue
	if edition, _ := t.w.cfg.edition(r); edition > 0 {
		t.d = dice.Dice(dice.Hash(uint64(t.d), uint64(edition)))
	}
	t.links = t.w.links(t.links[:0], r)
}

// page writes the page at r, with about size bytes.
func (t *writer) page(r Ref, size int) {
	t.begin(r)
	t.head(r)
	filler := max(0, size-len(t.made)-90*len(t.links))
	rest := t.links
	for at := sizes - 1; at >= 0; at-- {
		for ; filler >= smallestBlock<<at; filler -= smallestBlock << at {
			n := len(rest) * (smallestBlock << at) / filler
			t.paragraph(rest[:n])
			rest = rest[n:]
			t.filler(at)
		}
	}
	t.paragraph(rest)
	t.made = append(t.made, "</body>\n</html>\n"...)
	t.seal()
}

// filler writes the text between links, of a block's size: a paragraph of sentences in a language, or a block of
// made-up words.
func (t *writer) filler(size int) {
	all := t.tongue.sentences
	if all == nil {
		t.add(&t.tongue.blocks[size][t.d.Below(variants)])
		return
	}
	t.text("<p>")
	for end := len(t.made) + smallestBlock<<size; len(t.made) < end; {
		t.made = append(append(t.made, all[t.d.Below(len(all))]...), '\n')
	}
	t.text("</p>\n")
}

func (t *writer) text(s string) { t.made = append(t.made, s...) }

func (t *writer) head(r Ref) {
	t.text("<!DOCTYPE html>\n<html>\n<head>\n")
	if t.declares() && (r.N%3 != 0 || !t.declaresInHeader()) {
		t.text("<meta charset=\"" + t.tongue.charset + "\">\n")
	}
	t.text("<title>")
	t.words(2)
	t.made = strconv.AppendUint(t.made, uint64(r.N), 10)
	t.text("</title>\n")
	t.setBase(r)
	if r.Kind == Refresh {
		t.naming(`<meta http-equiv="refresh" content="0; url=`, Ref{Host: r.Host, N: r.N}, "\">\n")
	}
	for _, l := range t.links {
		if l.via == byEmbed && l.Kind != Image {
			t.embed(l.Ref)
		}
	}
	t.text("</head>\n<body>\n")
}

// declares reports whether the page or its header declares the charset.
func (t *writer) declares() bool { return t.tongue.language == "" || declared(t.from.N) }

// declaresInHeader reports whether the Content-Type field declares the charset.
func (t *writer) declaresInHeader() bool { return t.declares() && t.from.N%2 == 0 }

// setBase sets the base, which on some odd pages is another page of the host.
func (t *writer) setBase(r Ref) {
	if t.odd && t.d.Chance(300) {
		r = Ref{Host: r.Host, N: uint32(t.d.Below(t.host.pages))}
		t.naming(`<base href="`, r, "\">\n")
	}
	t.base = t.w.appendPath(t.base[:0], r, false)
	if end := bytes.IndexAny(t.base, "?;"); end >= 0 {
		t.base = t.base[:end]
	}
	t.base = t.base[:bytes.LastIndexByte(t.base, '/')+1]
}

func (t *writer) words(n int) {
	for range n {
		t.made = append(append(t.made, t.tongue.words[t.d.Ranked(len(t.tongue.words))]...), ' ')
	}
}

func (t *writer) paragraph(links []link) {
	if len(links) == 0 {
		return
	}
	t.text("<p>")
	for _, l := range links {
		switch {
		case l.via == byStealth:
			t.stealth(l.Ref)
		case l.via == byFrame:
			t.naming(`<iframe src="`, l.Ref, "\"></iframe>\n")
		case l.Kind == Image:
			t.embed(l.Ref)
		case l.via == byLink && t.odd:
			t.oddAnchor(l.Ref)
		case l.via == byLink:
			t.anchor(l.Ref)
		}
	}
	t.text("</p>\n")
}

func (t *writer) embed(r Ref) {
	switch r.Kind {
	case Image:
		t.naming(`<img alt="" src="`, r, "\">\n")
	case Style:
		t.naming(`<link rel="stylesheet" href="`, r, "\">\n")
	case Code:
		t.naming(`<script src="`, r, "\"></script>\n")
	}
}

func (t *writer) anchor(r Ref) {
	t.naming(`<a href="`, r, `">`)
	t.words(2)
	t.text("</a>\n")
}

// stealth writes the address of a resource in markup that only a faulty parser takes for a link.
func (t *writer) stealth(r Ref) {
	if t.d.Chance(500) {
		t.naming(`<!-- <a href="`, r, "\">old</a> -->\n")
		return
	}
	t.naming(`<script>var more = '<a href="`, r, "\">more</a>';</script>\n")
}

// naming writes markup with the shortest address of a resource, in quotes.
func (t *writer) naming(before string, r Ref, after string) {
	t.text(before)
	t.addr = t.address(t.addr[:0], r, false)
	rest := t.addr
	for at := bytes.IndexByte(rest, '&'); at >= 0; at = bytes.IndexByte(rest, '&') {
		t.made = append(append(t.made, rest[:at]...), "&amp;"...)
		rest = rest[at+1:]
	}
	t.made = append(t.made, rest...)
	t.text(after)
}

// address appends the path of a resource on the same host, or the URL of one on another host.
func (t *writer) address(dst []byte, r Ref, raw bool) []byte {
	if r.Host != t.from.Host {
		return t.w.appendURL(dst, r, t.port)
	}
	return t.w.appendPath(dst, r, raw)
}

func (t *writer) notFound(target string) {
	t.text("<!DOCTYPE html>\n<title>Not found</title>\n<p>There is no " + html.EscapeString(target) + ".\n")
	t.seal()
}

// oddAnchor writes a link in a valid but unusual form.
func (t *writer) oddAnchor(r Ref) {
	open, shut := `<a href="`, `">`
	t.addr = t.oddAddress(t.addr[:0], r)
	switch t.d.Below(8) {
	case 0:
		open, shut = "<A class=x HREF=", " >"
	case 1:
		open, shut = "<a\n\ttitle='<a href=/ghost/>'\n href\n=\n'", "'>"
	case 2:
		open, shut = `<a href=" `, "\n\">"
	case 3:
		open, shut = `<area shape=rect coords="0,0,1,1" href="`, `"><a>`
	case 4:
		open, shut = `<a href="mailto:nobody@example.com">`+"</a><a href=\"javascript:void('/ghost/')\"></a>"+`<a href="`,
			`">`
	case 5:
		open, shut = `<a href="#top"></a><a/data-href="/ghost/"/href="`, `"/>`
	}
	t.text(open)
	t.oddly(t.addr)
	t.text(shut)
	t.words(2)
	t.text("</a>\n")
}

// oddly writes an address with some characters as references, and unescaped ampersands where that is unambiguous.
func (t *writer) oddly(addr []byte) {
	how := t.d.Below(4)
	for i, c := range addr {
		switch {
		case c == '&' && how != 0:
			t.text("&amp;")
		case c == '/' && how == 1 && i > 0:
			t.text("&#47;")
		case c == '.' && how == 2:
			t.text("&#x2E;")
		default:
			t.made = append(t.made, c)
		}
	}
}

// oddAddress appends an address in one of its longer forms.
func (t *writer) oddAddress(dst []byte, r Ref) []byte {
	local := r.Host == t.from.Host
	switch form := t.d.Below(6); {
	case form == 0 && local:
		return t.relative(dst, r)
	case form == 1 && local:
		dst = append(dst, "/./a/../"...)
		return append(dst, t.address(nil, r, true)[1:]...)
	case form == 2:
		return t.w.appendSchemeless(dst, r, t.port)
	case form == 3:
		dst = append(t.w.appendURL(dst, r, t.port), "#part-"...)
		return strconv.AppendUint(dst, uint64(t.d.Below(9)), 10)
	case form == 4:
		dst = t.w.appendURL(dst, r, t.port)
		copy(dst, "HTTP")
		return dst
	}
	return t.address(dst, r, true)
}

// relative appends a path relative to the base.
func (t *writer) relative(dst []byte, r Ref) []byte {
	dst = append(dst, "./"...)
	for range bytes.Count(t.base, []byte("/")) - 1 {
		dst = append(dst, "../"...)
	}
	return append(dst, t.address(nil, r, true)[1:]...)
}
