package parse

import (
	"bytes"
	"iter"

	"kumo/internal/base/page"
)

// modules adds the modules that a script or an import map names.
func (x *extractor) modules(names iter.Seq[[]byte]) {
	for name := range names {
		x.text.reset()
		x.link(&reference{url: moduleURL(x.text.decode(name)), kind: page.Script})
	}
}

// modulesOf yields the module names in the text of a script element of the type; nil if the type has none.
func modulesOf(mime, script []byte) iter.Seq[[]byte] {
	switch mime = bytes.TrimSpace(mime); {
	case equalFold(mime, "module"):
		return staticImports(script)
	case equalFold(mime, "importmap"):
		return mappedModules(script)
	}
	return nil
}

// moduleURL returns the URL in a module name, without JSON escapes of slashes.
func moduleURL(name []byte) []byte { return bytes.ReplaceAll(name, []byte(`\/`), []byte("/")) }

// isModuleURL reports whether a module name is a URL, not a name that an import map resolves.
func isModuleURL(name []byte) bool {
	return bytes.HasPrefix(name, []byte("/")) || bytes.HasPrefix(name, []byte("./")) ||
		bytes.HasPrefix(name, []byte("../")) || isAbsolute(name)
}

// maxImport limits the distance between the beginning of an import declaration and the module name, in bytes.
const maxImport = 4 << 10

// staticImports yields the URLs in the import and export declarations of a module.
func staticImports(script []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if !bytes.Contains(script, []byte("import")) && !bytes.Contains(script, []byte("export")) {
			return
		}
		for name := range literals(script) {
			start := offset(script, name) - 1
			if isModuleURL(moduleURL(name)) && script[start] != '`' && isImported(script[max(0, start-maxImport):start]) &&
				!yield(name) {
				return
			}
		}
	}
}

// isImported reports whether a string after the text is the module name of an import or export declaration: the text
// ends in "import", or in "import" or "export", names, and "from".
func isImported(before []byte) bool {
	before = bytes.TrimRight(before, " \t\r\n")
	if rest, ok := cutWord(before, "import"); ok {
		return beginsStatement(rest)
	}
	rest, ok := cutWord(before, "from")
	if !ok {
		return false
	}
	for end := len(rest); end > 0; end-- {
		c := rest[end-1]
		if !isAlnum(c) && c < 0x80 && bytes.IndexByte([]byte("_$*{}, \t\r\n"), c) < 0 {
			return false
		}
		for _, word := range []string{"import", "export"} {
			if rest, ok := cutWord(rest[:end], word); ok && beginsStatement(rest) {
				return true
			}
		}
	}
	return false
}

func cutWord(text []byte, word string) (rest []byte, ok bool) {
	rest, ok = bytes.CutSuffix(text, []byte(word))
	if n := len(rest); ok && n > 0 && (isAlnum(rest[n-1]) || rest[n-1] == '_' || rest[n-1] == '$' || rest[n-1] == '.') {
		return nil, false
	}
	return rest, ok
}

// beginsStatement reports whether a statement can begin after the text.
func beginsStatement(before []byte) bool {
	line := before[bytes.LastIndexAny(before, "\r\n")+1:]
	line = bytes.TrimRight(line, " \t")
	return len(line) == 0 || bytes.IndexByte([]byte(";}"), line[len(line)-1]) >= 0 || bytes.HasSuffix(line, []byte("*/"))
}

// mappedModules yields the URLs in an import map. URLs that end with a slash are prefixes of many modules and are
// omitted.
func mappedModules(json []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for text := range literals(json) {
			end := offset(json, text) + len(text) + 1
			isKey := bytes.HasPrefix(trimLeft(json[end:]), []byte(":"))
			if url := moduleURL(text); !isKey && isModuleURL(url) && !bytes.HasSuffix(url, []byte("/")) && !yield(text) {
				return
			}
		}
	}
}
