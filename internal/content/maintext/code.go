package maintext

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

var codeLanguage = regexp.MustCompile(`^[\pL][\w+#.-]{0,19}$`)

// noLanguage are values that say that code is not in a programming language.
var noLanguage = wordSet("none default text plaintext plain nohighlight notranslate code source")

// languageOf returns the programming language of a pre element, which the names of the element, of its code, or of the
// elements around it contain.
func languageOf(pre *html.Node) string {
	elements := []*html.Node{pre}
	for c := range pre.ChildNodes() {
		if c.DataAtom == atom.Code {
			elements = append(elements, c)
			break
		}
	}
	for up, n := 0, pre.Parent; up < 3 && n != nil && (n.DataAtom == atom.Div || n.DataAtom == atom.Figure); up++ {
		elements = append(elements, n)
		n = n.Parent
	}
	for i, n := range elements {
		name := attr(n, "data-lang") + attr(n, "data-language")
		if name == "" {
			name = languageIn(attr(n, "class"), i == 0 || n.DataAtom == atom.Code)
		}
		if name = strings.ToLower(name); codeLanguage.MatchString(name) && !noLanguage[name] {
			return name
		}
	}
	return ""
}

// languageIn returns the language in the classes of an element; of a pre or its code also after the name of a
// highlighter: "hljs go", "brush: go", "sourceCode go".
func languageIn(class string, isCode bool) string {
	before := ""
	for name := range strings.FieldsSeq(class) {
		for _, prefix := range []string{"language-", "lang-", "highlight-source-", "highlight-", "src-"} {
			if lang, ok := strings.CutPrefix(name, prefix); ok && lang != "" && !noLanguage[lang] {
				return lang
			}
		}
		if isCode && (before == "hljs" || before == "brush:" || before == "sourceCode" && name != "sourceCode") {
			return strings.TrimSuffix(name, ";")
		}
		before = name
	}
	return ""
}
