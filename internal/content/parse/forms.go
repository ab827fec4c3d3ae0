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
func (x *extractor) openForm() {
	if x.form.open {
		return
	}
	action, _ := x.scan.attr(attrAction)
	x.form = form{open: true, post: x.keyword(attrMethod) == "post", action: action}
}

// control looks at an element of a form that may be sent with it. A button without a name is not.
func (x *extractor) control() {
	if !x.form.open {
		return
	}
	_, named := x.scan.attr(attrName)
	button := x.scan.tag == tagButton || x.scan.tag == tagInput && x.keyword(attrType) == "button"
	x.form.fields = x.form.fields || named || !button
}

// closeForm ends a form that may be open.
func (x *extractor) closeForm() {
	f := x.form
	x.form = form{}
	if !f.open || f.post || f.fields {
		return
	}
	action := bytes.Trim(x.text.attr(f.action), " \t\n\r\f")
	action = action[:indexByte(action, '#')]
	if action = action[:indexByte(action, '?')]; len(action) > 0 {
		x.link(&reference{url: action, kind: page.Form})
	}
}
