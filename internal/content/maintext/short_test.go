package maintext

import (
	"strings"
	"testing"
)

// TestShort reads pages with a few words. Each yields its text once, in lines and without the title.
func TestShort(t *testing.T) {
	const post = "<article class=post><div class=entry-content>" // found by two of the library's rules
	tests := []struct{ name, html, want string }{
		{"a paragraph", "<p>Hello.</p>", "Hello."},
		{"a paragraph in a named box", post + "<p>Hello.", "Hello."},
		{"a list in a named box", post + "<ul><li>one<li>two", "one\ntwo"},
		{"a box within a box", post + "<p>One.</p></div><p>Two.", "One.\nTwo."},
		{"paragraphs", "<p>One.<p>Two.", "One.\nTwo."},
		{"a refrain stays", "<p>Ho.<p>Ho.<p>Ho.", "Ho.\nHo.\nHo."},
		{"bare letters", "<meta name=robots content=noindex>Fx", "Fx"},
		{"letters in boxes", "<div><div>Hi.</div><div>Ho.</div></div>", "Hi.\nHo."},
		{"a digit", "3", "3"},
		{"a digit in a link", "<a href=one.html>1</a> <img src=own.png>", "1"},
		{"a list", "<ul><li>a<li>b</ul>", "a\nb"},
		{"a table", "<table><tr><td>a<td>b<tr><td>c<td>d</table>", "a\tb\nc\td"},
		{"a server's error", "<h1>404 Not Found</h1><hr><center>nginx</center>", "nginx"},
		{"inline markup", "<p>one <q>two</q> <code>three</code>", "one two three"},
		{"a link in a sentence", "<p>Read the <a href=/b>first chapter</a> of this book tonight.",
			"Read the first chapter of this book tonight."},
		{"nothing", "", ""},
		{"a heading", "<h1>T</h1>", ""},
		{"Han", "<p>你好。", "你好。"},
		{"Han, bare", "你好", "你好"},
		{"kana", "<div>こんにちは</div>", "こんにちは"},
		{"Arabic", "<p>مرحبا<p>بكم", "مرحبا\nبكم"},
		{"Arabic, bare", "مرحبا", "مرحبا"},
		{"Devanagari", post + "<p>नमस्ते", "नमस्ते"},
		{"Devanagari, bare", "नमस्ते", "नमस्ते"},
		{"Cyrillic", "<p>Привет.", "Привет."},
		{"Cyrillic, bare", "<div>Привет.</div>", "Привет."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { sameText(t, "<title>T</title>"+tt.html, tt.want) })
	}
}

// TestLinksOnly reads menus and directory listings. A page with visible text always has a main text; below prose, menus
// are not part of it.
func TestLinksOnly(t *testing.T) {
	tests := []struct{ name, before, each, after, want, wantEach string }{
		{"bare", "", "<a href=/p>LABEL</a> ", "", "", "LABEL "},
		{"in a list", "<ul>", "<li><a href=/p>LABEL</a>", "</ul>", "", "LABEL\n"},
		{"in a list in main", "<main><h1>Nav</h1><h2>More</h2><ul>", "<li><a href=/p>LABEL</a>", "</ul></main>", "More\n",
			"LABEL\n"},
		{"in paragraphs", "", "<p><a href=/p>LABEL</a>", "", "", "LABEL\n"},
		{"in an article", "<article>", "<p><a href=/p>LABEL</a>", "</article>", "", "LABEL\n"},
		{"a folder as a table", "<h1>Index of /</h1><table>", "<tr><td><a href=/p>LABEL</a><td>2024-05-06 10:11<td>1K",
			"</table><address>Server at example.org</address>", "", "LABEL\t2024-05-06 10:11\t1K\n"},
		{"a folder as lines", "<h1>Index of /</h1><pre>", "<a href=/p>LABEL</a>    06-May-2024 10:11   12\n", "</pre>", "",
			"LABEL    06-May-2024 10:11   12\n"},
		{"below a few words", "<p>Nothing here today.</p>", "<a href=/p>LABEL</a> ", "", "Nothing here today.", ""},
		{"below a sentence", "<p>Choose one of these topics to read on about it:</p>", "<li><a href=/p>LABEL</a>", "",
			"Choose one of these topics to read on about it:", ""},
	}
	for _, label := range []string{"Topics", "主题标签", "テーマ", "موضوعات", "विषयसूची", "Разделы"} {
		for _, tt := range tests {
			t.Run(tt.name+" "+label, func(t *testing.T) {
				twelve := func(each string) string { return strings.Repeat(strings.Replace(each, "LABEL", label, 1), 12) }
				want := strings.TrimSpace(tt.want + twelve(tt.wantEach))
				sameText(t, "<title>Nav</title>"+tt.before+twelve(tt.each)+tt.after, want)
			})
		}
	}
}

// TestPlaces tests anchors: left open, they must not make a link of the following text.
func TestPlaces(t *testing.T) {
	sameText(t, "<h2><a name=x>Boats</h2><p>"+long+"<h2><a id=y>Ships</a></h2><p>"+strings.ToUpper(long),
		"Boats\n"+long+"\nShips\n"+strings.ToUpper(long))
}

// TestPre tests code samples: lines and indentation are kept, within prose and alone.
func TestPre(t *testing.T) {
	tests := []struct{ name, html, want string }{
		{"alone", "<pre>if x {\n\ty()\n}</pre>", "if x {\n\ty()\n}"},
		{"indented from its first line", "<pre>    a\n  b</pre>", "    a\n  b"},
		{"columns, empty lines, spaces at the end", "<pre>a   b  \n\n\nc \t</pre>", "a   b\nc"},
		{"highlighted", "<pre><code><span>for</span> {\n  <span>x</span>(<a href=#1>y</a>)\n}</code></pre>",
			"for {\n  x(y)\n}"},
		{"no-break spaces", "<pre>a\n\u00A0\u00A0b", "a\n  b"},
		{"in prose", "<p>" + long + "</p><pre>if x:\n    y()\n</pre><p>" + strings.ToUpper(long),
			long + "\nif x:\n    y()\n" + strings.ToUpper(long)},
		{"in an article", "<article><p>" + long + "</p><pre><code>if x:\n    y()</code></pre></article>",
			long + "\nif x:\n    y()"},
		{"among short lines", "<div>Run this now:<pre>a\n\tb</pre></div>", "Run this now:\na\n\tb"},
		{"Han", "<pre>如果：\n    打印（甲）</pre>", "如果：\n    打印（甲）"},
		{"Arabic", "<pre>مرحبا\n  بكم</pre>", "مرحبا\n  بكم"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { sameText(t, "<title>T</title>"+tt.html, tt.want) })
	}
}

// TestArticleBody tests text that is only in JSON-LD, as on a page filled by scripts.
func TestArticleBody(t *testing.T) {
	data := func(body string) string {
		return `<script type="application/ld+json" title="&quot;&gt;x">{"@type":"NewsArticle","articleBody":"` + body +
			`"}</script>`
	}
	sameText(t, data(long+`\n\n`+long)+"<div id=app>Loading</div>", long+"\n"+long)
	sameText(t, data("<p>"+long+"</p><p>x")+"<p>Loading", long+"\nx")
	sameText(t, data("Short.")+"<p>"+long, long)
}

func sameText(t *testing.T, html, want string) {
	t.Helper()
	got, err := extract([]byte(html), "", now)
	if err != nil || got.Text != want {
		t.Errorf("%s\n got %q, %v\nwant %q", html, got.Text, err, want)
	}
}
