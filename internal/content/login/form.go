package login

import (
	"bytes"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"kumo/internal/base/weburl"
)

type form struct {
	action string
	post   bool
	button bool       // the first submit button was found; its attributes apply
	base   *string    // href of the first base element before the form; nil: none
	fields url.Values // values from the page
	names  map[string]bool
}

// findForm returns the first form of a page that has all fields; nil if there is none. A script may add fields to a
// form, so if no form has all of them, it returns the first form with a password field.
func findForm(body []byte, want map[string]Value) *form {
	var password, now *form
	var base *string
	for z := html.NewTokenizer(bytes.NewReader(body)); ; {
		switch z.Next() {
		case html.ErrorToken:
			if now != nil && now.has(want) { // the form has no end tag
				return now
			}
			return password
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if t.DataAtom == atom.Base && base == nil && hasAttribute(t, "href") {
				href := attribute(t, "href")
				base = &href
			}
			if t.DataAtom == atom.Form {
				now = &form{action: attribute(t, "action"), post: strings.EqualFold(attribute(t, "method"), "post"),
					base: base, fields: url.Values{}, names: map[string]bool{}}
			} else if now != nil && now.input(t) && password == nil {
				password = now
			}
		case html.EndTagToken:
			if t := z.Token(); t.DataAtom == atom.Form && now != nil {
				if now.has(want) {
					return now
				}
				now = nil
			}
		}
	}
}

// target returns the URL to post the form to, resolved as in a browser on a page at u.
func (f *form) target(u weburl.URL) (weburl.URL, error) {
	if f.action == "" {
		return u, nil
	}
	if f.base != nil {
		if base, err := u.Resolve(*f.base); err == nil {
			u = base
		}
	}
	return u.Resolve(f.action)
}

func hasAttribute(t html.Token, key string) bool {
	return slices.ContainsFunc(t.Attr, func(a html.Attribute) bool { return a.Key == key })
}

func attribute(t html.Token, key string) string {
	for _, a := range t.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// input adds a field with its value from the page, if it is submitted. It reports whether it is a password field. The
// form's first submit button may change where and how the form is sent.
func (f *form) input(t html.Token) (password bool) {
	if isSubmit(t) && !f.button {
		f.button = true
		if hasAttribute(t, "formaction") {
			f.action = attribute(t, "formaction")
		}
		if hasAttribute(t, "formmethod") {
			f.post = strings.EqualFold(attribute(t, "formmethod"), "post")
		}
	}
	name := attribute(t, "name")
	if name == "" || t.DataAtom != atom.Input && t.DataAtom != atom.Textarea && t.DataAtom != atom.Select {
		return false
	}
	f.names[name] = true
	if t.DataAtom != atom.Input {
		return false
	}
	switch kind := strings.ToLower(attribute(t, "type")); kind {
	case "hidden", "text", "email", "":
		f.fields.Add(name, attribute(t, "value"))
	case "password":
		return true
	}
	return false
}

// isSubmit reports whether an element is a button that submits its form.
func isSubmit(t html.Token) bool {
	kind := strings.ToLower(attribute(t, "type"))
	switch t.DataAtom {
	case atom.Button:
		return kind != "button" && kind != "reset"
	case atom.Input:
		return kind == "submit" || kind == "image"
	}
	return false
}

func (f *form) has(want map[string]Value) bool {
	for name := range want {
		if !f.names[name] {
			return false
		}
	}
	return true
}

// filled returns the form data to send.
func (f *form) filled(with map[string]Value) string {
	for name, value := range with {
		f.fields.Set(name, string(value))
	}
	return f.fields.Encode()
}
