package synthweb

import (
	"bytes"
	"strconv"
)

// oddAnchor writes a link in one of the ways that are right but seldom tried.
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

// oddly writes an address with some characters as references, and ampersands bare where that is unambiguous.
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
