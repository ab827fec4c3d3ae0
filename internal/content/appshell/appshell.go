// Package appshell recognizes HTML pages that show nothing without a browser: the shells of client-side apps, pages that
// only ask to enable JavaScript, and pages whose script leads elsewhere.
//
// It is cautious: a page with some text, several links, frames, pictures or a form is never one, because a crawl reads
// what such a page has. So a page whose navigation is in its markup and whose text is not is not recognized.
package appshell

import (
	"bytes"
	"errors"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"kumo/internal/base/page"
)

const (
	// MaxText is the bytes of text from which a page is no shell. Shells have at most a title and "Loading".
	MaxText = 200
	// MaxLinks is the number of links to other pages up to which a page may be a shell.
	MaxLinks = 3

	maxMarkup  = 4 << 20 // bytes of markup that are read; shells with inline data are long
	maxToken   = 1 << 20 // bytes of a tag or a script; a page with a longer one is not recognized
	maxEmpty   = 40      // bytes of text up to which a page without another sign is one
	maxPicture = 2       // pictures up to which a page may be a shell
	minInline  = 200     // bytes of a script without src that builds a page
	maxAttrs   = 100     // attributes of an element that are read
	maxValue   = 1000    // bytes of an attribute's value; longer ones are ignored
)

// rootIDs are the ids of elements into which frameworks render.
var rootIDs = map[string]bool{
	"root": true, "app": true, "__next": true, "__nuxt": true, "___gatsby": true, "svelte": true, "ember-app": true,
	"react-root": true, "reactroot": true, "react-app": true, "app-root": true, "approot": true, "vue-app": true,
	"main-app": true, "application": true, "q-app": true, "mount": true, "elm": true, "blazor": true, "flutter": true,
}

// rootElements are the names of custom elements with the same purpose.
var rootElements = map[string]bool{"app-root": true, "my-app": true, "flutter-view": true, "ion-app": true,
	"app-component": true, "shop-app": true}

// rootAttrs are the attributes with the same purpose.
var rootAttrs = map[string]bool{"ng-app": true, "data-ng-app": true, "ng-version": true, "data-reactroot": true,
	"data-v-app": true, "v-cloak": true, "data-sveltekit-preload-data": true}

// readAttrs are the other attributes that matter.
var readAttrs = map[string]bool{"id": true, "href": true, "src": true, "type": true, "http-equiv": true}

// Detect returns why a page shows nothing without script; "" if it is not known to. markup is in UTF-8, or in another
// charset that contains ASCII.
func Detect(markup []byte) page.ScriptNeed {
	s := shell{tokens: html.NewTokenizer(bytes.NewReader(markup[:min(len(markup), maxMarkup)]))}
	s.tokens.SetMaxBuf(maxToken)
	for s.next() {
		if s.text >= MaxText || s.links > MaxLinks || s.pictures > maxPicture || s.other {
			return page.NoScriptNeeded
		}
	}
	return s.need()
}

// A shell has the signs that were found in a page so far.
type shell struct {
	tokens *html.Tokenizer

	hidden   string // the element whose text is not shown; "" outside
	isScript bool   // its text is a script

	text     int // bytes of visible text
	links    int
	pictures int
	other    bool // has frames, forms or media, leads elsewhere by itself, or is hostile

	root, plea, leaves bool
	scripts            int // that may build a page
}

func (s *shell) next() bool {
	switch s.tokens.Next() {
	case html.ErrorToken:
		s.other = s.other || errors.Is(s.tokens.Err(), html.ErrBufferExceeded)
		return false
	case html.TextToken:
		s.readText(s.tokens.Text())
	case html.StartTagToken, html.SelfClosingTagToken:
		name, more := s.tokens.TagName()
		s.element(string(name), more)
	case html.EndTagToken:
		if name, _ := s.tokens.TagName(); string(name) == s.hidden {
			s.hidden, s.isScript = "", false
		}
	}
	return true
}

func (s *shell) readText(text []byte) {
	switch {
	case s.isScript:
		if len(text) >= minInline {
			s.scripts++
		}
		s.leaves = s.leaves || leavesPage(text)
	case s.hidden == "noscript":
		s.plea = s.plea || bytes.Contains(bytes.ToLower(text), []byte("javascript"))
	case s.hidden == "":
		for word := range bytes.FieldsSeq(text) {
			s.text += len(word) + 1
		}
	}
}

// leavesPage reports whether a script loads another page. Such scripts are short; long ones do so only on events.
func leavesPage(script []byte) bool {
	if len(script) > 1000 {
		return false
	}
	compact := bytes.ReplaceAll(script, []byte(" "), nil)
	for _, call := range [...]string{"location=", "location.href=", "location.replace(", "location.assign("} {
		if bytes.Contains(compact, []byte(call)) {
			return true
		}
	}
	return false
}

func (s *shell) element(name string, more bool) {
	attrs := map[string]string{}
	for n := 0; more && n < maxAttrs; n++ {
		var key, value []byte
		key, value, more = s.tokens.TagAttr()
		switch text := string(key); {
		case rootAttrs[text]:
			s.root = true
		case readAttrs[text] && len(value) <= maxValue:
			attrs[text] = string(value)
		}
	}
	switch atom.Lookup([]byte(name)) {
	case atom.Script:
		s.script(attrs)
	case atom.Style, atom.Noscript, atom.Template, atom.Title, atom.Svg, atom.Textarea, atom.Select:
		if s.hidden == "" {
			s.hidden = name
		}
	case atom.A:
		if href := attrs["href"]; s.hidden == "" && href != "" && !strings.HasPrefix(href, "#") {
			s.links++
		}
	case atom.Img, atom.Picture:
		if s.hidden == "" {
			s.pictures++
		}
	case atom.Iframe, atom.Frame, atom.Object, atom.Embed, atom.Input, atom.Video, atom.Audio:
		s.other = s.other || s.hidden == "" && attrs["type"] != "hidden"
	case atom.Meta:
		s.other = s.other || strings.EqualFold(attrs["http-equiv"], "refresh") && s.hidden == ""
	}
	s.root = s.root || rootElements[name] || rootIDs[strings.ToLower(attrs["id"])]
}

// script handles the start of a script element.
func (s *shell) script(attrs map[string]string) {
	s.hidden = "script"
	switch t := strings.ToLower(attrs["type"]); t {
	case "", "module", "text/javascript", "application/javascript", "text/babel":
		s.isScript = true
		if src := attrs["src"]; src != "" && (t == "module" || isBundle(src)) {
			s.scripts++
		}
	}
}

// bundles are parts of the names of scripts that build pages. Scripts for statistics have other names.
var bundles = [...]string{"app", "main", "bundle", "chunk", "index", "runtime", "vendor", "polyfill", "client", "entry",
	"webpack", "/_next/", "/_nuxt/", "react", "vue", "angular", "svelte", "ember", "flutter", "blazor", "require"}

func isBundle(src string) bool {
	src, _, _ = strings.Cut(strings.ToLower(src), "?")
	for _, part := range bundles {
		if strings.Contains(src, part) {
			return true
		}
	}
	return false
}

func (s *shell) need() page.ScriptNeed {
	switch {
	case s.other:
		return page.NoScriptNeeded
	case s.leaves && s.text <= maxEmpty && s.links == 0:
		return page.ScriptLeaves
	case s.scripts == 0:
		return page.NoScriptNeeded
	case s.root:
		return page.ScriptRoot
	case s.plea:
		return page.ScriptPlea
	case s.text <= maxEmpty && s.links == 0:
		return page.ScriptAlone
	}
	return page.NoScriptNeeded
}

// TextLen returns the length of a page's visible text in bytes, white space collapsed.
func TextLen(markup []byte) int {
	s := shell{tokens: html.NewTokenizer(bytes.NewReader(markup[:min(len(markup), maxMarkup)]))}
	s.tokens.SetMaxBuf(maxToken)
	for s.next() {
	}
	return s.text
}
