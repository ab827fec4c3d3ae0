package parse

import (
	"bytes"

	"kumo/internal/base/page"
)

// A form is a link where a browser could submit it in one way only: by GET, and without any field. Its submission is a
// request for the action without its query.
type form struct {
	open   bool
	post   bool
	fields bool
	action []byte // as it stands in the markup
}

// openForm begins a form. A form within a form is none.
func (p *Parser) openForm() {
	if p.form.open {
		return
	}
	action, _ := p.scan.attr(attrAction)
	p.form = form{open: true, post: p.keyword(attrMethod) == "post", action: action}
}

// control looks at an element of a form that may be sent with it. A button without a name is not.
func (p *Parser) control() {
	if !p.form.open {
		return
	}
	_, named := p.scan.attr(attrName)
	button := p.scan.tag == tagButton || p.scan.tag == tagInput && p.keyword(attrType) == "button"
	p.form.fields = p.form.fields || named || !button
}

// closeForm ends a form that may be open.
func (p *Parser) closeForm() {
	f := p.form
	p.form = form{}
	if !f.open || f.post || f.fields {
		return
	}
	action := bytes.Trim(p.text.attr(f.action), " \t\n\r\f")
	action = action[:indexByte(action, '#')]
	if action = action[:indexByte(action, '?')]; len(action) > 0 {
		p.link(&reference{url: action, kind: page.Form})
	}
}
