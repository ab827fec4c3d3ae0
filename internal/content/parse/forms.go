package parse

import (
	"bytes"

	"kumo/internal/base/page"
)

// A form is a link if a browser could submit it in only one way: by GET and without fields. Submitting it requests the
// action without its query.
type form struct {
	open   bool
	post   bool
	fields bool
	action []byte // as written in the markup
}

// openForm begins a form. Nested forms are ignored.
func (x *extractor) openForm() {
	if x.form.open {
		return
	}
	action, _ := x.scan.attr(attrAction)
	x.form = form{open: true, post: x.keyword(attrMethod) == "post", action: action}
}

// control records a form control that may be submitted. A button without a name is never submitted.
func (x *extractor) control() {
	if !x.form.open {
		return
	}
	_, named := x.scan.attr(attrName)
	button := x.scan.tag == tagButton || x.scan.tag == tagInput && x.keyword(attrType) == "button"
	x.form.fields = x.form.fields || named || !button
}

// closeForm ends the open form, if there is one.
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
