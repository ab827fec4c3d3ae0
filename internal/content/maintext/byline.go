package maintext

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bylines are lines between the headline and the text that name the author in words: "Posted by Ann Lee". Names are
// taken only if the words before them, or a link, leave little doubt.

// maxOpening bounds the number of nodes that are searched for a byline.
const maxOpening = 300

// opening returns the range of nodes that may have a byline: from the end of the headline to the second good passage
// after it. The first one may be the byline.
func (d *document) opening() (begin, end int) {
	if h1 := d.firstHeading(); h1 > 0 {
		begin = d.tree.End(h1)
	}
	passages := 0
	for end = begin; end < min(d.tree.Nodes(), begin+maxOpening); end++ {
		if d.adds[end] == 0 {
			continue
		}
		if isHeading(d.tree.Node(end).DataAtom) {
			end = d.tree.End(end) - 1
			continue
		}
		if passages++; passages == 2 {
			break
		}
	}
	return begin, end
}

// isByline reports whether an aside between headline and text is a short line with an author's name.
func (f *facts) isByline(d *document, i int) bool {
	if i < f.begin || i >= f.end || d.names[i]&(layerName|commentName) != 0 || d.between(i).text > maxShortText {
		return false
	}
	for j := i + 1; j < min(d.tree.End(i), i+maxNear); j++ {
		if d.names[j]&authorName != 0 {
			return true
		}
	}
	return false
}

var (
	// saidBy are the words before a name. The name follows in the same text, or is that of the next element.
	saidBy = regexp.MustCompile(`(?i)^[^\pL]*(?:(?:started|created|posted|written|submitted|published|reported|` +
		`contributed|uploaded|asked|reviewed|words|text|story|article)\s+by\b|` +
		`(?:geschrieben|verfasst|erstellt|veröffentlicht|text)\s+von\b|(?:écrit|publié|rédigé|proposé)\s+par\b|` +
		`(?:escrito|publicado)\s+por\b|(?:scritto|pubblicato)\s+da\b|(?:автор|autor|autorin|auteur|autore)\s*:|` +
		`(?:作者|撰文|文)\s*[:：])\s*`)
	// justBy begins a line that has nothing but a name.
	justBy   = regexp.MustCompile(`^\s*(?:By|BY|Von|Par|Por)\s+`)
	nameEnds = regexp.MustCompile(`\s*(?:[|•·–—,;(»]|\s-\s|\s(?:on|am|in|at|le|el|il)\s|\s\d|\.\s|\.?$)`)
)

// readByline reads an author's name from a short text.
func (f *facts) readByline(d *document, i int, n *html.Node) {
	s := n.Data
	if f.spoken != "" || i < f.begin || i >= f.end || len(s) < 2 || len(s) > maxShortText ||
		isHeading(n.Parent.DataAtom) || !mayIntroduce(s) {
		return
	}
	if at := saidBy.FindStringIndex(s); at != nil {
		if rest := s[at[1]:]; strings.TrimSpace(rest) != "" {
			f.spoken = beginOfName(rest, 1)
		} else {
			f.spoken = d.nameAfter(n)
		}
		return
	}
	if endsBy(s) && d.names[d.tree.Parent(i)]&(dateName|authorName|metaName) != 0 {
		f.spoken = d.nameAfter(n)
		return
	}
	if at := justBy.FindStringIndex(s); at != nil && n.PrevSibling == nil && f.begin > 0 {
		f.spoken = beginOfName(s[at[1]:], 2)
	}
}

// introductions are parts of the words before names.
var introductions = []string{"by", "By", "BY", "von", "Von", "par", "Par", "por", "Por", " da", ":", "："}

// mayIntroduce quickly excludes most texts.
func mayIntroduce(s string) bool {
	return slices.ContainsFunc(introductions, func(word string) bool { return strings.Contains(s, word) })
}

// endsBy reports whether a text is the part of a line before a link to an author.
func endsBy(s string) bool {
	s = strings.TrimSpace(s)
	switch strings.ToLower(s[strings.LastIndexAny(s, " \n\t")+1:]) {
	case "by", "von", "par", "por":
		return true
	}
	return false
}

// nameAfter returns the name in the element after a text.
func (d *document) nameAfter(text *html.Node) string {
	switch next := text.NextSibling; {
	case next == nil || next.Type != html.ElementNode || styleOf(next.DataAtom) != inline || next.DataAtom == atom.Time:
		return ""
	default:
		return d.nameOf(next)
	}
}

// beginOfName returns the name at the beginning of a text, "" if there is none with at least a number of words.
func beginOfName(s string, words int) string {
	if at := nameEnds.FindStringIndex(s); at != nil {
		s = s[:at[0]]
	}
	if s = collapse(s, maxField); !isName(withoutDate(s), words) {
		return ""
	}
	return withoutDate(s)
}

// particles are words of names without a capital.
var particles = wordSet("de da di do dos du del della der den van von zu la le el al bin ben ibn y e ter ten af av")

// isName reports whether a text can be the name of a person: at most four words of letters, which begin with a capital.
// In scripts without capitals, a name is short.
func isName(s string, least int) bool {
	words := strings.Fields(s)
	if len(words) == 0 || len(words) > 4 || len(s) > maxName {
		return false
	}
	for _, word := range words {
		first, _ := utf8.DecodeRuneInString(word)
		if !unicode.IsUpper(first) && (unicode.IsLower(first) || !unicode.IsLetter(first)) && !particles[word] {
			return false
		}
		for _, r := range word {
			if !unicode.IsLetter(r) && !unicode.IsMark(r) && !strings.ContainsRune(".-'’·・", r) {
				return false
			}
		}
	}
	if first, _ := utf8.DecodeRuneInString(s); !unicode.IsUpper(first) {
		n := utf8.RuneCountInString(s)
		return n >= 2 && n <= 12 // Chinese, Arabic
	}
	return len(words) >= least
}

// isAuthorURL reports whether a link leads to the page of an author.
func isAuthorURL(href string) bool {
	if len(href) > maxPlace || !strings.Contains(href, "aut") {
		return false
	}
	path, _, _ := strings.Cut(href, "?")
	before := ""
	for part := range strings.SplitSeq(path, "/") {
		if part != "" && authorPaths[before] {
			return true
		}
		before = part
	}
	return false
}

var authorPaths = wordSet("author authors autor autoren autores auteur auteurs autore autori")

const changes = `(?i)(?:modified|updated|changed|edited|revised|aktualisiert|geändert|bearbeitet|` +
	`modifi(?:é|cation|cación|cado|ca)|mise? à jour|actualiza(?:do|ción)|aggiornat[oa]|изменени[ея]|обновлен[оия]+|` +
	`修改|更新)`

var (
	// changeWords precede a date of the last change.
	changeWords = regexp.MustCompile(changes)
	changeEnds  = regexp.MustCompile(changes + `(?:\s+(?:on|at|am|le|el|il|by))?[\s:：]*$`)
	publication = regexp.MustCompile(`(?i)publi|posted|created|written|erstellt|veröffentlicht|опубликован|发布|公開`)
	changeNames = []string{"modif", "last-update", "lastupdate", "last_update"}
)

// isModified reports whether the name of an element, or the words before it, say that its date is that of a change.
func isModified(n *html.Node) bool {
	class := strings.ToLower(attr(n, "class"))
	for _, name := range changeNames {
		if strings.Contains(class, name) {
			return true
		}
	}
	for range 3 {
		before := n.PrevSibling
		for before != nil && before.Type == html.TextNode && strings.TrimSpace(before.Data) == "" {
			before = before.PrevSibling
		}
		for before != nil && before.Type == html.ElementNode {
			before = before.LastChild
		}
		if before != nil {
			return before.Type == html.TextNode && changeEnds.MatchString(before.Data[max(0, len(before.Data)-40):])
		}
		if n = n.Parent; n == nil || styleOf(n.DataAtom) != inline {
			return false
		}
	}
	return false
}

// withoutChange removes the date of a change from a line about a text.
func withoutChange(s string) string {
	if !hasDigits(s, 4) {
		return s
	}
	at := changeWords.FindStringIndex(s)
	if at == nil {
		return s
	}
	if hasDigits(s[:at[0]], 4) {
		return s[:at[0]]
	}
	rest := s[at[1]:]
	if at := publication.FindStringIndex(rest); at != nil {
		return rest[at[1]:]
	}
	return ""
}
