package parse

import (
	"bytes"
	"cmp"
	"errors"
	"html"
	"iter"
	"slices"
	"strings"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

// A Refer returns the replacement of a reference. to is the resolved URL with its fragment. The result is a URL in
// ASCII without white space, absolute or relative to the location of the rewritten file. False keeps the reference.
type Refer func(to weburl.URL, kind page.Kind) (string, bool)

// ErrRewrite means that references cannot be replaced because the body's charset cannot be written.
var ErrRewrite = errors.New("cannot write the charset of the body")

// CanRewrite reports whether Rewrite supports bodies of the media type.
func CanRewrite(essence string) bool {
	return IsHTML(essence) || essence == "text/css" || essence == svgType || mediaType(essence).IsJavaScript()
}

const svgType = "image/svg+xml"

// Rewrite appends to dst the body of resp with its references replaced. essence is the media type by which it is
// parsed. All other bytes stay unchanged, in the body's own charset. In scripts, only references to imported modules
// are replaced.
//
// The result can be read elsewhere and without header fields. A charset that only a header field declared is declared
// in the result. Base elements lose their URL. Where refer returns a relative URL, integrity and crossorigin are
// removed, since a browser would reject the file. Policies in meta elements (Content-Security-Policy), connection hints
// (preconnect, dns-prefetch) and ping are removed, too.
//
// It fails if resp.URL is not a URL, or with ErrRewrite; then dst ends with the unchanged body.
func (p *Parser) Rewrite(dst []byte, resp *page.Response, essence string, refer Refer) ([]byte, error) {
	self, err := weburl.Parse(resp.URL)
	if err != nil {
		return append(dst, resp.Body...), err
	}
	p.self = self
	p.document = document{fallback: self, base: self}
	defer p.release()
	contentType := resp.Header.Get("Content-Type")
	r := &rewriter{refer: refer}
	switch {
	case IsHTML(essence):
		p.begin(resp)
		p.html(resp, contentType, &page.Page{Sniffed: essence})
		r.document = p.document
		r.open(resp.Body)
		r.scan.reset(r.src, essence == xhtml)
		r.markup()
		r.declareCharset(essence == xhtml)
	case essence == svgType:
		p.charset, p.how = xmlCharset(resp.Body, contentType)
		r.document = p.document
		r.open(resp.Body)
		r.scan.reset(r.src, true)
		r.markup()
		r.declareCharset(true)
	case essence == "text/css":
		g := sniffPlain(resp.Body, contentType)
		p.charset, p.how = g.charset, g.how
		r.document = p.document
		r.open(resp.Body)
		r.styles(r.src, 0, inText)
		r.declareStyle()
	case mediaType(essence).IsJavaScript():
		g := sniffPlain(resp.Body, contentType)
		p.charset, p.how = g.charset, g.how
		r.document = p.document
		r.open(resp.Body)
		r.modules(staticImports(r.src))
	default:
		return append(dst, resp.Body...), nil
	}
	return r.write(dst, resp.Body)
}

func xmlCharset(body []byte, contentType string) (charset, string) {
	if g := declared(body, contentType); g.how != "" {
		return g.charset, g.how
	}
	if cs, ok := xmlEncoding(body[:min(len(body), prescanSize)]); ok {
		return cs, howMeta
	}
	return utf8Charset, howDefault
}

// A rewriter passes over a document again when its base URL and charset are known, and collects the edits.
type rewriter struct {
	document
	refer     Refer
	text      text
	src       []byte // the document as parsed
	mark      int    // length of the body's byte order mark
	converted bool   // src is the body converted to UTF-8
	edits     []edit

	local bool // a reference of the element was replaced by a relative one
}

// An edit replaces the text in an extent.
type edit struct {
	extent
	text string
}

// A context determines how a reference is escaped.
type context uint8

const (
	inText      context = iota // a style sheet, or an element's raw text
	inAttribute                // an attribute value
	inXML                      // text in XML
)

func (r *rewriter) open(body []byte) {
	if g := declared(body, ""); g.how == howMark {
		r.mark = len(body) - len(g.text)
	}
	r.src = body[r.mark:]
	if r.charset.asciiBased() {
		r.text.init(r.charset, r.charset, r.src)
		return
	}
	r.converted = true
	r.src = r.charset.decode(nil, r.src)
	r.text.init(r.charset, utf8Charset, r.src)
}

func (r *rewriter) replace(at extent, with string) {
	if string(r.src[at.start:at.end]) != with {
		r.edits = append(r.edits, edit{at, with})
	}
}

func (r *rewriter) write(dst, body []byte) ([]byte, error) {
	mark := body[:r.mark]
	if r.mark == 0 && r.how == howHeader && strings.HasPrefix(r.charset.name, "utf-16") {
		// only a byte order mark can declare it
		for _, m := range byteOrderMarks {
			if m.charset.name == r.charset.name {
				mark = []byte(m.mark)
			}
		}
	}
	start := len(dst)
	dst = append(dst, mark...)
	if len(r.edits) == 0 {
		return append(dst, body[r.mark:]...), nil
	}
	if !r.converted {
		return r.apply(dst), nil
	}
	out, err := r.charset.enc.NewEncoder().Bytes(r.apply(nil))
	if err != nil {
		return append(dst[:start], body...), ErrRewrite
	}
	return append(dst, out...), nil
}

// apply appends the document with the edits applied.
func (r *rewriter) apply(dst []byte) []byte {
	slices.SortStableFunc(r.edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	done := 0
	for _, e := range r.edits {
		if e.start < done { // inside an earlier edit
			continue
		}
		dst = append(append(dst, r.src[done:e.start]...), e.text...)
		done = e.end
	}
	return append(dst, r.src[done:]...)
}

func (r *rewriter) markup() {
	for r.scan.next() {
		r.text.reset()
		r.local = false
		switch {
		case r.scan.closing:
			continue
		case r.scan.space == inSVG:
			r.svgElement()
		case r.scan.space == inMath:
		default:
			r.element()
		}
		if raw, ok := r.scan.attr(attrStyle); ok && mayHaveURL(raw) {
			r.styleAttribute(attrStyle, raw)
		}
		if r.scan.has(lazyAttrs) {
			r.lazy()
		}
		if r.local {
			r.dropIntegrity()
		}
	}
}

// element does the same as Parser.element for references that a browser follows, and for forms.
func (r *rewriter) element() {
	switch r.scan.tag {
	case tagA, tagArea:
		r.url(attrHref, page.Anchor)
		r.empty(attrPing)
	case tagBase:
		r.empty(attrHref)
	case tagLink:
		r.linkElement()
	case tagMeta:
		r.metaElement()
	case tagImg, tagImage:
		r.url(attrSrc, page.Image)
		r.srcset(attrSrcset)
		r.url(attrLowSrc, page.Image)
		r.url(attrDynsrc, page.Media)
		r.url(attrLongDesc, page.Cite)
	case tagScript:
		r.url(attrSrc, page.Script)
		mime, _ := r.scan.attr(attrType)
		if names := modulesOf(r.text.attr(mime), r.scan.content); names != nil {
			r.modules(names)
		}
	case tagFrame, tagIframe:
		r.url(attrSrc, page.Frame)
		r.url(attrLongDesc, page.Cite)
		r.srcdoc()
	case tagForm:
		r.url(attrAction, page.Form)
	case tagInput:
		r.url(attrSrc, page.Image)
		r.formAction()
	case tagButton:
		r.formAction()
	case tagSource:
		r.url(attrSrc, page.Media)
		r.srcset(attrSrcset)
	case tagVideo:
		r.url(attrSrc, page.Media)
		r.url(attrPoster, page.Image)
	case tagAudio, tagTrack, tagSound:
		r.url(attrSrc, page.Media)
	case tagEmbed:
		r.url(attrSrc, page.Object)
	case tagObject:
		r.url(attrData, page.Object)
	case tagBody, tagTable, tagCell:
		r.url(attrBackground, page.Image)
	case tagBlockquote, tagCite:
		r.url(attrCite, page.Cite)
	case tagRoot:
		r.url(attrManifest, page.Resource)
	case tagStyle:
		if r.scan.xml {
			r.foreignStyle()
		} else {
			r.styles(r.scan.content, offset(r.src, r.scan.content), inText)
		}
	}
}

func (r *rewriter) lazy() {
	for a := firstLazy; a < numAttrs; a++ {
		switch raw, ok := r.scan.attr(a); {
		case !ok:
		case a == attrDataSrcset, a == attrDataLazySrcset:
			r.srcset(a)
		case a == attrDataBackground && mayHaveURL(raw):
			r.styleAttribute(a, raw)
		case isLazyURL(raw):
			r.url(a, r.scan.tag.lazyKind())
		}
	}
}

// modules replaces module names, which must be slices of the document.
func (r *rewriter) modules(names iter.Seq[[]byte]) {
	for raw := range names {
		to, ok := r.replacement(moduleURL(r.text.decode(raw)), page.Script)
		if !ok {
			continue
		}
		if !isModuleURL([]byte(to)) {
			to = "./" + to // a bare name would be resolved by an import map
		}
		start := offset(r.src, raw)
		r.replace(extent{start, start + len(raw)}, escapeIn(inText, to))
		r.text.reset()
	}
}

// svgElement does the same as Parser.svgElement, but replaces both href and xlink:href.
func (r *rewriter) svgElement() {
	kind := page.Image
	switch r.scan.tag {
	case tagA:
		kind = page.Anchor
	case tagImage, tagUse:
	case tagScript:
		kind = page.Script
	case tagStyle:
		r.foreignStyle()
		return
	default:
		return
	}
	r.url(attrHref, kind)
	r.url(attrXlinkHref, kind)
}

// offset returns the position of piece in text. Both must share an underlying array and its end.
func offset(text, piece []byte) int { return cap(text) - cap(piece) }

// url replaces an attribute's URL. References to a part of the document itself are kept.
func (r *rewriter) url(a attr, kind page.Kind) {
	if raw, ok := r.scan.attr(a); ok {
		r.urlAt(r.scan.values[a], raw, kind)
	}
}

func (r *rewriter) urlAt(at extent, raw []byte, kind page.Kind) {
	if len(raw) == 0 || len(raw) > maxValue || raw[0] == '#' && !r.hasBase {
		return
	}
	if to, ok := r.replacement(r.text.attr(raw), kind); ok {
		r.value(at, to)
	}
}

// replacement returns the new text of a reference; false if it does not change.
func (r *rewriter) replacement(ref []byte, kind page.Kind) (string, bool) {
	was := ref
	if r.text.encoder != nil {
		ref = r.text.query(ref)
	}
	u, err := r.base.Resolve(string(ref))
	if err != nil || !u.IsHTTP() {
		return "", false
	}
	to, ok := r.refer(u, kind)
	if !ok {
		return "", false
	}
	r.local = r.local || !isAbsolute([]byte(to))
	return to, to != string(was)
}

// value replaces an attribute's value.
func (r *rewriter) value(at extent, with string) {
	with = html.EscapeString(with)
	if q := r.src[at.start-1]; q != '"' && q != '\'' && (with == "" || strings.ContainsAny(with, " \t\n\r\f`=&")) {
		with = `"` + with + `"`
	}
	r.replace(at, with)
}

// empty clears an attribute's value.
func (r *rewriter) empty(a attr) {
	if raw, ok := r.scan.attr(a); ok && len(raw) > 0 {
		r.value(r.scan.values[a], "")
	}
}

func (r *rewriter) srcset(a attr) {
	raw, ok := r.scan.attr(a)
	if !ok || len(raw) > maxValue {
		return
	}
	for c := range candidates(raw) {
		if to, ok := r.replacement(r.text.attr(c.url), page.Image); ok {
			start := r.scan.values[a].start + offset(raw, c.url)
			to = strings.ReplaceAll(to, ",", "%2C")
			r.replace(extent{start, start + len(c.url)}, escapeIn(inAttribute, to))
		}
	}
}

// escapeIn escapes a URL that is part of a longer text.
func escapeIn(in context, url string) string {
	url = contextEscaper.Replace(url)
	if in == inText {
		return url
	}
	return strings.ReplaceAll(url, "&", "&amp;")
}

// contextEscaper percent-encodes characters that may have a meaning in the surrounding text.
var contextEscaper = strings.NewReplacer("'", "%27", `"`, "%22", "(", "%28", ")", "%29", `\`, "%5C",
	"<", "%3C", ">", "%3E", "`", "%60")

func (r *rewriter) linkElement() {
	rel, _ := r.scan.attr(attrRel)
	rel = r.text.attr(rel)
	switch kind, ok := relKind(rel, page.Alternate); {
	case ok:
		r.url(attrHref, kind)
	case len(rel) > 0:
		r.empty(attrHref)
	}
	r.srcset(attrImageSrcset)
}

func (r *rewriter) metaElement() {
	equiv, _ := r.scan.attr(attrHTTPEquiv)
	content, ok := r.scan.attr(attrContent)
	if !ok {
		return
	}
	at := r.scan.values[attrContent]
	switch equiv = bytes.TrimSpace(r.text.attr(equiv)); {
	case equalFold(equiv, "content-security-policy"):
		r.empty(attrContent)
	case equalFold(equiv, "refresh"):
		_, ref, ok := parseRefresh(content)
		if !ok || len(ref) == 0 {
			return
		}
		if to, ok := r.replacement(r.text.attr(ref), page.Refresh); ok {
			start := at.start + offset(content, ref)
			r.replace(extent{start, start + len(ref)}, escapeIn(inAttribute, to))
		}
	}
}

// srcdoc replaces the references of the document in an iframe's srcdoc attribute.
func (r *rewriter) srcdoc() {
	raw, ok := r.scan.attr(attrSrcdoc)
	if !ok || r.depth == maxInner || len(raw) > maxValue {
		return
	}
	doc := bytes.Clone(r.text.attr(raw))
	in := &rewriter{refer: r.refer, src: doc}
	in.document = document{fallback: r.base, base: r.base, hasBase: r.hasBase, depth: r.depth + 1, charset: utf8Charset}
	in.text.init(utf8Charset, utf8Charset, doc)
	in.findBase()
	in.scan.reset(doc, false)
	in.markup()
	if len(in.edits) > 0 {
		r.value(r.scan.values[attrSrcdoc], string(in.apply(nil)))
	}
}

func (r *rewriter) findBase() {
	if indexFold(r.src, "<base") < 0 {
		return
	}
	for r.scan.reset(r.src, false); r.scan.next(); {
		if raw, ok := r.scan.attr(attrHref); ok && r.scan.tag == tagBase && r.scan.space == inHTML && !r.scan.inTemplate() {
			r.text.reset()
			if base, err := r.fallback.Resolve(string(r.text.attr(raw))); err == nil {
				r.base, r.hasBase = base, true
			}
			return
		}
	}
}

func (r *rewriter) styleAttribute(a attr, raw []byte) {
	at := r.scan.values[a]
	if bytes.IndexByte(raw, '&') < 0 {
		r.styles(raw, at.start, inAttribute)
		return
	}
	if len(raw) > maxValue {
		return
	}
	css := bytes.Clone(r.text.attr(raw))
	in := &rewriter{refer: r.refer, src: css}
	in.document = document{base: r.base, hasBase: r.hasBase}
	in.text.init(utf8Charset, utf8Charset, css)
	in.styles(css, 0, inText)
	if len(in.edits) > 0 {
		r.value(at, string(in.apply(nil)))
	}
}

func (r *rewriter) foreignStyle() {
	if r.scan.selfClosing {
		return
	}
	rest := r.src[r.scan.pos:]
	in := inXML
	css := rest[:indexByte(rest, '<')]
	if section, ok := bytes.CutPrefix(rest[len(css):], []byte("<![CDATA[")); ok && len(trimLeft(css)) == 0 {
		css, _, _ = bytes.Cut(section, []byte("]]>"))
		in = inText
	}
	r.styles(css, offset(r.src, css), in)
}

// styles replaces the references of a style sheet that begins at offset at of the document.
func (r *rewriter) styles(css []byte, at int, in context) {
	for raw, kind := range cssReferences(css) {
		ref := unescapeCSS(r.text.decode(raw))
		if len(ref) == 0 || ref[0] == '#' {
			continue
		}
		if to, ok := r.replacement(ref, kind); ok {
			start := at + offset(css, raw)
			r.replace(extent{start, start + len(raw)}, escapeIn(in, to))
		}
		r.text.reset()
	}
}

// formAction replaces the target of a form control.
func (r *rewriter) formAction() {
	r.eachAttribute(func(name []byte, _, value extent) {
		if equalFold(name, "formaction") {
			r.urlAt(value, r.src[value.start:value.end], page.Form)
		}
	})
}

// dropIntegrity removes attributes that would make a browser reject a local file.
func (r *rewriter) dropIntegrity() {
	switch r.scan.tag {
	case tagLink, tagScript, tagImg, tagVideo, tagAudio, tagSource, tagImage:
		r.eachAttribute(func(name []byte, all, _ extent) {
			if equalFold(name, "integrity") || equalFold(name, "crossorigin") {
				r.replace(all, "")
			}
		})
	}
}

// eachAttribute calls f with the attributes of the current tag.
func (r *rewriter) eachAttribute(f func(name []byte, all, value extent)) {
	src := r.src
	for i := nameEnd(src, r.scan.start+1, endsTagName); i < len(src) && src[i] != '>'; {
		if isSpace(src[i]) || src[i] == '/' {
			i++
			continue
		}
		end := nameEnd(src, i, endsAttrName)
		name, all, value := src[i:end], extent{i, end}, extent{}
		if next := r.scan.skipSpace(end); next < len(src) && src[next] == '=' {
			value, all.end = r.scan.value(r.scan.skipSpace(next + 1))
		}
		i = all.end
		f(name, all, value)
	}
}

// declareCharset adds a charset declaration if only a header field declared the charset.
func (r *rewriter) declareCharset(xml bool) {
	if r.how != howHeader || isASCII(r.src) || strings.HasPrefix(r.charset.name, "utf-16") {
		return
	}
	own, said := prescan(r.src)
	if said && own.name == r.charset.name {
		return
	}
	switch {
	case xml && (bytes.HasPrefix(r.src, []byte("<?xml")) || r.charset.name == utf8Charset.name):
	case xml:
		r.edits = append(r.edits, edit{text: `<?xml version="1.0" encoding="` + r.charset.name + `"?>`})
	default:
		at := headStart(r.src)
		r.edits = append(r.edits, edit{extent{at, at}, `<meta charset="` + r.charset.name + `">`})
	}
}

// InsertInHead inserts an element at the beginning of a document's head.
func InsertInHead(document []byte, element string) []byte {
	return slices.Insert(document, headStart(document), []byte(element)...)
}

// headStart returns the first position for a meta element: after the tags of html and head if the document begins with
// them.
func headStart(src []byte) (at int) {
	for i, next := 0, ""; ; {
		rest := src[i:]
		space := len(rest) - len(trimLeft(rest))
		i, rest = i+space, rest[space:]
		switch {
		case bytes.HasPrefix(rest, []byte("<!--")):
			s := scanner{src: src}
			i = s.comment(i + len("<!--"))
		case bytes.HasPrefix(rest, []byte("<!")), bytes.HasPrefix(rest, []byte("<?")):
			i = past(src, i, '>')
			at = i
		case next != "head" && len(rest) > 0 && rest[0] == '<' && beginsTag(rest[1:], "html"),
			len(rest) > 0 && rest[0] == '<' && beginsTag(rest[1:], "head"):
			s := scanner{src: src}
			end, whole := s.attributes(i+len("<html"), tagOther)
			if !whole {
				return at
			}
			if beginsTag(rest[1:], "head") {
				return end
			}
			i, at, next = end, end, "head"
		default:
			return at
		}
		if i >= len(src) {
			return at
		}
	}
}

func (r *rewriter) declareStyle() {
	const begin = `@charset "`
	if r.how != howHeader || r.converted || isASCII(r.src) {
		return
	}
	at := extent{}
	if bytes.HasPrefix(r.src, []byte(begin)) {
		if n := bytes.IndexByte(r.src[len(begin):], '"'); n >= 0 {
			at.end = len(begin) + n + 1
			if own, ok := lookup(r.src[len(begin) : len(begin)+n]); ok && own.name == r.charset.name {
				return
			}
			r.replace(at, begin+r.charset.name+`"`)
			return
		}
	}
	r.edits = append(r.edits, edit{at, begin + r.charset.name + `";`})
}
