package login

import (
	"bytes"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A form is one of a page.
type form struct {
	action string
	post   bool
	fields url.Values // as the page has them
	names  map[string]bool
}

// findForm is the first form of a page that has all fields; nil if none has. Fields that the page does not name may be
// put there by a script: so a form with a password's field is taken if no other is there.
func findForm(body []byte, want map[string]Value) *form {
	var password, now *form
	for z := html.NewTokenizer(bytes.NewReader(body)); ; {
		switch z.Next() {
		case html.ErrorToken:
			if now != nil && now.has(want) { // a form that does not end
				return now
			}
			return password
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if t.DataAtom == atom.Form {
				now = &form{action: attribute(t, "action"), post: strings.EqualFold(attribute(t, "method"), "post"),
					fields: url.Values{}, names: map[string]bool{}}
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

func attribute(t html.Token, key string) string {
	for _, a := range t.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// input takes a field with the value that the page gives it, if it is sent. It reports whether it is a password's.
func (f *form) input(t html.Token) (password bool) {
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

func (f *form) has(want map[string]Value) bool {
	for name := range want {
		if !f.names[name] {
			return false
		}
	}
	return true
}

// filled is what is sent.
func (f *form) filled(with map[string]Value) string {
	for name, value := range with {
		f.fields.Set(name, string(value))
	}
	return f.fields.Encode()
}
