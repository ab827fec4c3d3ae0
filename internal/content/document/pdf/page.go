//go:build (amd64 || arm64) && (linux || darwin || windows || freebsd)

package pdf

import (
	"strings"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"

	"kumo/internal/content/document"
)

// pages reads the pages' lines and links, and returns the number of the last page that it read.
func (s *session) pages() int {
	n := s.doc.Pages
	if s.lim.Pages > 0 && n > s.lim.Pages {
		n = s.lim.Pages
		s.problem(document.TooLarge, "pages 1 to %d of %d were read", n, s.doc.Pages)
	}
	forms := false
	if t, err := s.p.FPDF_GetFormType(&requests.FPDF_GetFormType{Document: s.ref}); err == nil {
		forms = t.FormType != enums.FPDF_FORMTYPE_NONE
	}
	for i := range n {
		if s.ctx.Err() != nil || s.broken != nil {
			return i
		}
		if s.lim.Text > 0 && s.bytes >= s.lim.Text || s.lim.Blocks > 0 && len(s.lines) >= 4*s.lim.Blocks {
			s.problem(document.TooLarge, "the text of pages 1 to %d of %d was read", i, s.doc.Pages)
			return i
		}
		err := s.page(i, forms)
		if s.fatal(err) {
			s.problem(document.Broken, "page %d of %d: PDFium stopped: %s", i+1, s.doc.Pages, shorten(err))
		} else if err != nil {
			s.problem(document.Broken, "page %d of %d cannot be read: %s", i+1, s.doc.Pages, shorten(err))
		}
	}
	return n
}

func (s *session) page(index int, forms bool) error {
	loaded, err := s.p.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: s.ref, Index: index})
	if err != nil {
		return err
	}
	page := requests.Page{ByReference: &loaded.Page}
	text, err := s.p.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: page})
	if err == nil {
		err = s.text(index+1, text.TextPage)
		if err == nil {
			err = s.annotations(index+1, page, text.TextPage)
		}
		if err == nil && forms {
			err = s.fields(index+1, page)
		}
		if !s.fatal(err) {
			_, _ = s.p.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: text.TextPage})
		}
	}
	if !s.fatal(err) {
		_, _ = s.p.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page})
	}
	return err
}

// text reads a page's lines in the order of PDFium, which is that of the page's content except that right-to-left
// text is in logical order.
func (s *session) text(number int, page references.FPDF_TEXTPAGE) error {
	count, err := s.p.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: page})
	if err != nil || count.Count == 0 {
		return err
	}
	n := count.Count
	if s.lim.Text > 0 {
		n = min(n, s.lim.Text-s.bytes)
	}
	got, err := s.p.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: page, Count: n})
	if err != nil {
		return err
	}
	chars := []rune(got.Text)
	for len(chars) > 0 && chars[len(chars)-1] == 0 {
		chars = chars[:len(chars)-1]
	}
	same := len(chars) == count.Count // then indices in the text are those of the page's characters
	if same {
		if err := s.accents(page, chars); err != nil {
			return err
		}
	}
	begin := 0
	for i := 0; i <= len(chars); i++ {
		if i < len(chars) && !isBreak(chars[i]) {
			continue
		}
		l := line{page: number, hyphen: i < len(chars) && isHyphenMark(chars[i])}
		from, to := trim(chars, begin, i)
		begin = i + 1
		if from == to {
			continue
		}
		l.text = clean(chars[from:to])
		if l.text == "" {
			continue
		}
		if err := s.measure(&l, page, from, to-1, same); err != nil {
			return err
		}
		s.bytes += len(l.text) + 1
		s.lines = append(s.lines, l)
	}
	if n < count.Count {
		s.problem(document.TooLarge, "the text of page %d of %d was read in part", number, s.doc.Pages)
	}
	return nil
}

// accents joins accents that are characters of their own, as TeX sets them without fonts for Europe, with the letters
// below them. The letter may be anywhere in the text: PDFium moves higher accents behind it.
func (s *session) accents(page references.FPDF_TEXTPAGE, chars []rune) error {
	for i, r := range chars {
		if combining[r] == 0 {
			continue
		}
		b, err := s.p.FPDFText_GetCharBox(&requests.FPDFText_GetCharBox{TextPage: page, Index: i})
		if s.fatal(err) {
			return err
		}
		if err != nil {
			continue
		}
		// a little below the accent
		at, err := s.p.FPDFText_GetCharIndexAtPos(&requests.FPDFText_GetCharIndexAtPos{TextPage: page,
			X: (b.Left + b.Right) / 2, Y: b.Bottom - max(1, (b.Top-b.Bottom)/2), XTolerance: 0.5, YTolerance: 1})
		if s.fatal(err) {
			return err
		}
		if err != nil || at.CharIndex < 0 || at.CharIndex >= len(chars) || at.CharIndex == i {
			continue
		}
		if c := compose(chars[at.CharIndex], r); c != 0 {
			chars[at.CharIndex], chars[i] = c, softHyphen // which is not part of the text
		}
	}
	return nil
}

// measure sets where a line is by its first, middle and last character.
func (s *session) measure(l *line, page references.FPDF_TEXTPAGE, first, last int, same bool) error {
	at := []int{first, (first + last) / 2, last}
	if last-first < 2 {
		at = []int{first, last}
	}
	if first == last {
		at = at[:1]
	}
	var boxes []box
	for _, i := range at {
		if !same {
			x, err := s.p.FPDFText_GetCharIndexFromTextIndex(
				&requests.FPDFText_GetCharIndexFromTextIndex{TextPage: page, NTextIndex: i})
			if s.fatal(err) {
				return err
			}
			if err != nil || x.CharIndex < 0 {
				continue
			}
			i = x.CharIndex
		}
		got, err := s.p.FPDFText_GetLooseCharBox(&requests.FPDFText_GetLooseCharBox{TextPage: page, Index: i})
		if s.fatal(err) {
			return err
		}
		if err != nil {
			continue
		}
		r := got.Rect
		boxes = append(boxes, box{float64(min(r.Left, r.Right)), float64(max(r.Left, r.Right)),
			float64(max(r.Top, r.Bottom)), float64(min(r.Top, r.Bottom))})
	}
	l.place(boxes)
	return nil
}

// annotations reads the page's links to URLs.
func (s *session) annotations(number int, page requests.Page, text references.FPDF_TEXTPAGE) error {
	// A page cannot have more annotations than this: a broken list must not be an endless loop.
	const most = 20_000
	for pos, n := 0, 0; n < most; n++ {
		next, err := s.p.FPDFLink_Enumerate(&requests.FPDFLink_Enumerate{Page: page, StartPos: pos})
		if err != nil {
			return err
		}
		if next.Link == nil || next.NextStartPos == nil || *next.NextStartPos <= pos {
			return nil
		}
		pos = *next.NextStartPos
		action, err := s.p.FPDFLink_GetAction(&requests.FPDFLink_GetAction{Link: *next.Link})
		if s.fatal(err) {
			return err
		}
		if err != nil || action.Action == nil {
			continue
		}
		// the path is set for the type URI only
		uri, err := s.p.FPDFAction_GetURIPath(
			&requests.FPDFAction_GetURIPath{Document: s.ref, Action: *action.Action})
		if s.fatal(err) {
			return err
		}
		if err != nil || uri.URIPath == nil || *uri.URIPath == "" {
			continue
		}
		if s.lim.Links > 0 && s.links >= s.lim.Links {
			s.problem(document.TooLarge, "the first %d links were read", s.links)
			return nil
		}
		a := linked{page: number, url: strings.ToValidUTF8(strings.TrimSpace(*uri.URIPath), "")}
		if r, err := s.p.FPDFLink_GetAnnotRect(&requests.FPDFLink_GetAnnotRect{Link: *next.Link}); err == nil &&
			r.Rect != nil {
			// Rectangles touch what is around: a point less on each side takes only the link's own text.
			top, bottom := float64(max(r.Rect.Top, r.Rect.Bottom)), float64(min(r.Rect.Top, r.Rect.Bottom))
			inset := min(1, (top-bottom)/5)
			t, err := s.p.FPDFText_GetBoundedText(&requests.FPDFText_GetBoundedText{TextPage: text,
				Left: float64(r.Rect.Left) + inset, Right: float64(r.Rect.Right) - inset, Top: top - inset,
				Bottom: bottom + inset})
			if s.fatal(err) {
				return err
			}
			if err == nil && len(t.Text) < 2000 {
				a.text = joinAll(t.Text)
			}
		} else if s.fatal(err) {
			return err
		}
		s.links++
		s.uris = append(s.uris, a)
	}
	s.problem(document.TooLarge, "page %d has more than %d annotations", number, most)
	return nil
}

// fields reads the values of a form's fields, which are not part of the page's text.
func (s *session) fields(number int, page requests.Page) error {
	form, err := s.p.GetForm(&requests.GetForm{Page: page})
	if s.fatal(err) {
		return err
	}
	if err != nil {
		return nil // the text of the page is read anyway
	}
	for _, f := range form.Fields {
		var values []string
		if f.Value != nil {
			values = append(values, *f.Value)
		}
		values = append(values, f.Values...)
		for _, v := range values {
			v = clean([]rune(strings.Join(strings.Fields(v), " ")))
			if v == "" || s.lim.Text > 0 && s.bytes+len(v) > s.lim.Text {
				continue
			}
			s.bytes += len(v) + 1
			s.lines = append(s.lines, line{page: number, text: v, alone: true})
		}
	}
	return nil
}
