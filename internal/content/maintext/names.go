package maintext

import (
	"iter"
	"strings"
	"unicode"
)

// names is what the words in a class, id or microdata name say of an element.
type names uint16

const (
	asideName       names = 1 << iota // not main text
	layerName                         // shown above the page: consent, popup
	commentName                       // of comments, which are main text of threads
	authorName                        // contains the author's name
	dateName                          // contains the publication date
	publishedName                     // contains the publication date and no other
	postName                          // a post of a thread
	metaName                          // line about the text, such as its author and date
	numbersName                       // line numbers of code
	manualName                        // of a documentation generator
	reviewName                        // of customers' reviews, which are comments on products
	signatureName                     // of a poster, below a post
	contentsName                      // a table of contents
	entryFooterName                   // of a text rather than of the page, often with author and date
)

// nameWords are the words of each kind of name.
var nameWords = func() map[string]names {
	all := map[string]names{}
	for is, words := range map[names]string{
		asideName: `nav navbar navigation menu sidebar footer banner breadcrumb breadcrumbs share sharing social related
			ad ads advert advertisement advertising promo sponsor sponsored newsletter pager pagination skip skiplink
			outbrain taboola recirc recirculation recommended recommendations rss subscribe signup sphinxsidebar catlinks
			printfooter navbox editsection noprint infobox navheader navfooter`,
		layerName:   "cookie cookies consent gdpr popup modal",
		commentName: "comment comments commentlist disqus replies respond",
		authorName:  "author authors byline autor authorname auteur writer",
		dateName: `date datum fecha data dateline datetime published pubdate publishdate posted timestamp time byline meta
			entrydate postdate submitted info infos credits dato created publish postmetadata subline details header
			datepublished tanggal`,
		publishedName: "published pubdate publish dtpublished",
		postName:      "post message reply answer postbody",
		metaName: `byline dateline postmetadata postprofile author authors date entrydate postdate pubdate published posted
			timestamp`,
		manualName: `documentwrapper sphinxsidebarwrapper docutils navheader navfooter memdoc memitem refnamediv
			refsynopsisdiv refentry rustdoc docblock mdbook rst toctree mandoc readme confluence`,
		numbersName:   "linenos linenodiv lineno linenumbers lnt",
		reviewName:    "review reviews reviewlist opinion opinions ratings",
		signatureName: "signature",
		contentsName:  "toc tableofcontents",
	} {
		for word := range strings.FieldsSeq(words) {
			all[word] |= is
		}
	}
	return all
}()

// negations precede a word that the element only is beside of, or has not: with-sidebar, no-ads.
var negations = wordSet("with has have no non without hide hidden not and before after is above below beside")

// entryWords precede "footer" in the names of lines below a text.
var entryWords = wordSet("entry post article")

// A nameCache remembers what names say, over the pages that an extractor reads.
type nameCache map[string]names

const (
	maxNames   = 4 << 10 // remembered
	maxNameLen = 200     // bytes of remembered ones
)

func (c nameCache) of(s string) names {
	if is, known := c[s]; known {
		return is
	}
	is := namesOf(s)
	if len(s) <= maxNameLen {
		if len(c) >= maxNames {
			clear(c)
		}
		c[strings.Clone(s)] = is
	}
	return is
}

func namesOf(s string) (is names) {
	before := ""
	for word := range wordsOf(s) {
		if !negations[before] {
			is |= nameWords[word]
			if word == "footer" && entryWords[before] {
				is |= entryFooterName
			}
		}
		if strings.HasSuffix(word, "date") && !strings.HasSuffix(word, "update") {
			is |= dateName | publishedName
		}
		if !negations[before] {
			switch {
			case strings.HasPrefix(word, "related"): // relatedposts
				is |= asideName
			case strings.HasPrefix(word, "cookie"): // cookiebar
				is |= layerName
			}
		}
		before = word
	}
	return is
}

// wordsOf yields the words of a class, id or microdata name in lower case. A word ends before a capital letter that
// follows a small one. A number at its end is dropped; text with digits elsewhere, such as a hash, is not a word.
func wordsOf(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			part = strings.TrimRight(part, "0123456789")
			if part == "" || strings.ContainsAny(part, "0123456789") {
				if !yield("") {
					return
				}
				continue
			}
			begin, small := 0, false
			for i, r := range part {
				capital := unicode.IsUpper(r)
				if capital && small {
					if !yield(strings.ToLower(part[begin:i])) {
						return
					}
					begin = i
				}
				small = !capital
			}
			if !yield(strings.ToLower(part[begin:])) {
				return
			}
			if begin > 0 && !yield(strings.ToLower(part)) {
				return
			}
		}
	}
}

// wordSet returns a set of words.
func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}
