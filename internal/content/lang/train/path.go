package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/language"
)

// source returns the work that a file belongs to: the folder below share, doc or lib.
func source(path string) string {
	dirs := strings.Split(filepath.ToSlash(path), "/")
	for i, d := range dirs {
		if d == "doc" || (d == "share" || d == "lib") && i+1 < len(dirs) && dirs[i+1] != "doc" {
			return dirs[min(i+1, len(dirs)-1)]
		}
	}
	return dirs[0]
}

// tag matches the language names of folders and files of documentation.
var tag = regexp.MustCompile(`^[a-z]{2}([-_][a-zA-Z]{2})?(@[a-z]+)?$`)

// tagged returns the innermost part of a path that is a language name.
func tagged(parts []string) string {
	for _, p := range slices.Backward(parts) {
		if tag.MatchString(p) || p == "C" {
			return p
		}
	}
	return ""
}

// classify derives the language and format of a file from its path.
func classify(path string) (lang string, read func([]byte) ([]message, error)) {
	dirs := strings.Split(path, "/")
	name := dirs[len(dirs)-1]
	base := strings.TrimSuffix(name, filepath.Ext(name))
	switch filepath.Ext(name) {
	case ".mo":
		if i := slices.Index(dirs, "LC_MESSAGES"); i > 0 {
			return dirs[i-1], mo
		}
		return base[strings.LastIndex(base, "-")+1:], mo
	case ".json":
		if slices.Contains(dirs, "i18n") && base != "qqq" {
			return base, messages
		}
	case ".pak":
		if slices.Contains(dirs, "locales") && !strings.Contains(base, "_") {
			return base, pak
		}
	case ".page", ".html":
		if slices.Contains(dirs, "declaration") {
			return declaration(base), markup
		}
		return tagged(append(dirs, strings.Split(base, ".")...)), markup
	}
	return "", nil
}

// declaration returns the language of a translation of the Universal Declaration, from its three-letter code. It omits
// the known languages, because the tests use them.
func declaration(code string) string {
	code, _, _ = strings.Cut(code, "_")
	tag, err := language.Macro.Parse(code)
	if err != nil {
		return ""
	}
	base, _ := tag.Base()
	for _, p := range plans {
		if slices.Contains(p.known, canonical(base.String())) {
			return ""
		}
	}
	return base.String()
}

// canonical maps the names of a language to one code without region or variant, as lang.Result uses it. For varieties
// that are neither a known language nor clearly another, it returns "".
func canonical(lang string) string {
	lang = strings.ToLower(strings.ReplaceAll(lang, "_", "-"))
	lang, _, _ = strings.Cut(lang, "@")
	switch lang {
	case "c":
		return "en"
	case "zh-cn", "zh-hans", "zh-sg":
		return "zh-Hans"
	case "zh-tw", "zh-hant", "zh-hk":
		return "zh-Hant"
	case "tt-iqtelif", "ku-iq", "map-bms", "roa-tara", "cbk-zam", "be-tarask":
		return lang
	}
	lang, _, _ = strings.Cut(lang, "-")
	switch lang {
	case "tl":
		return "fil"
	case "zlm", "zsm", "mly":
		return "ms"
	// in Han, which may be several languages
	case "zh", "yue", "lzh", "wuu", "gan", "hak", "cdo", "nan", "cjy", "hsn", "cpx", "ryu",
		"arz", "ary", "arq", "aeb", "apc", "acm", "ajp", "afb", "sdc", // spoken Arabic
		"frc", "jam", "pcm", "hif", "dty", "pdc", "mo", "simple", "tlh", "qqx", "exif", "hu-formal":
		return ""
	}
	return lang
}
