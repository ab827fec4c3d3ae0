package maintext

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"kumo/internal/base/cputime"
)

// around is enough prose to turn a tested fragment into an article.
const around = `<p>This is the first paragraph of an article, which has to be long enough so that it is taken for one by who reads it.</p>
	%s<p>And this is the last paragraph of the article, with as many words as the first one has, so that both of them stay.</p>`

func TestMarkdown(t *testing.T) {
	for name, c := range map[string]struct{ html, want string }{
		"headings": {`<h2>Part <em>one</em> #</h2><h4>Part 1. two</h4>`, "## Part *one* \\#\n\n#### Part 1. two"},
		"emphasis": {`<p>a <b>bold <i>and not both</i></b> and<em> italic </em>word<b></b>s`,
			"a **bold and not both** and *italic* words"},
		"punctuation": {`<p>x<b>"quoted"</b>y <b>"quoted"</b> z`, `x"quoted"y **"quoted"** z`},
		"links": {`<p>see <a href="/x_(y)?a=1&copy=2">the <b>page</b></a>, <a href="javascript:x">not</a> <a name=x>this</a><a href="#f"> there </a>and so on, with enough other words around it.`,
			"see [the **page**](http://a.test/x_%28y%29?a=1&copy=2), not this [there](http://a.test/dir/x#f) and so on"},
		"image": {`<p>look: <img src="i.png" alt="A [pic]"> is there<img src="data:x">`,
			`look: ![A \[pic\]](http://a.test/dir/i.png) is there`},
		"lists": {`<ul><li>one<li>two <ol start=3><li>three<li>four</ol><li><p>five<p>six</ul><ul><li>seven</ul>`,
			"- one\n- two\n  \n  3. three\n  4. four\n- five\n  \n  six\n\n- seven"},
		"tight":           {`<ol><li>a<li>b</ol>`, "1. a\n2. b"},
		"quote":           {`<blockquote><p>said<p>again</blockquote>`, "> said\n>\n> again"},
		"code in a quote": {"<blockquote><p>said<pre>a\n  b</pre></blockquote>", "> said\n>\n> ```\n> a\n>   b\n> ```"},
		"lines in cells":  {`<table><tr><td>a<br>b<td><ul><li>c<li>d</ul></table>`, "| a b | c d |"},
		"parameters":      {`<p><a href="?q=a:b/c+d&amp;lt;">as they are</a> and with enough other words behind.`, "[as they are](http://a.test/dir/x?q=a:b/c+d&amp;lt;)"},
		"code": {"<p>call <code>f(`x`, *y)</code> or <kbd>a|b</kbd></p><pre><code>if x {\n\treturn  `y`\n}\n</code></pre>",
			"call ``f(`x`, *y)`` or `a|b`\n\n```\nif x {\n\treturn  `y`\n}\n```"},
		"language": {`<pre><code class=language-go>func f() {}</code></pre>`, "```go\nfunc f() {}\n```"},
		"rowspan":  {`<table><tr><th>A<th>B<tr><td rowspan=2>1<td>2<tr><td>3</table>`, "| 1 | 2 |\n|  | 3 |"},
		"percent":  {`<p>see <a href="/50%-off">this offer</a> and the other words around it`, "(http://a.test/50%25-off)"},
		"fence":    {"<pre>```\nx\n```</pre>", "````\n```\nx\n```\n````"},
		"deleted":  {`<p>a <del>old</del> and <s>gone</s> b`, "a ~~old~~ and ~~gone~~ b"},
		"indices":  {`<p>H<sub>2</sub>O x<sup>2</sup>`, "H<sub>2</sub>O x<sup>2</sup>"},
		"tasks": {`<ul><li><input type=checkbox checked> Done<li><p><input type=checkbox> Open</p><li><label><input type=checkbox>Late</label><li>no <input type=checkbox> task</ul>`,
			"- [x] Done\n- [ ] Open\n- [ ] Late\n- no task"},
		"rules": {`<p>x<hr><hr><p>y`, "x\n\n* * *\n\ny"},
		"figure": {`<figure><img src=i.png alt="The pier"><figcaption>Seen from the sea.</figcaption></figure>`,
			"![The pier](http://a.test/dir/i.png)\n\nSeen from the sea."},
		"lazy image": {`<p>x <img src="data:image/gif;base64,R0" data-src="i.png" alt=P> y`, "![P](http://a.test/dir/i.png)"},
		"languages": {`<pre class="language-go"><code>a()</code></pre><div class="highlight-python notranslate"><div class=highlight><pre><span></span>b</pre></div></div><pre><code class="hljs rust">c</code></pre><div class="highlight highlight-source-shell"><pre>d</pre></div><div class="highlight-default"><pre>e</pre></div>`,
			"```go\na()\n```\n\n```python\nb\n```\n\n```rust\nc\n```\n\n```shell\nd\n```\n\n```\ne\n```"},
		"line numbers": {"<table class=highlighttable><tr><td class=linenos><div class=linenodiv><pre>1\n2</pre></div><td class=code><div class=highlight><pre>x = 1\ny = 2\n</pre></div></table>",
			"```\nx = 1\ny = 2\n```"},
		"gutter": {"<div class=language-ruby><pre><code><table><tr><td class=rouge-gutter><pre class=lineno>1\n2\n</pre><td class=rouge-code><pre>a = 1\nb = 2\n</pre></table></code></pre></div>",
			"```ruby\na = 1\nb = 2\n```"},
		"spans": {`<table><tr><th>Name<th colspan=2>Cost<tr><td rowspan=2>Pier<td>4<td>5<tr><td>6<td>7</table>`,
			"| Name | Cost |  |\n|---|---|---|\n| Pier | 4 | 5 |\n|  | 6 | 7 |"},
		"paragraphs in cells": {`<table><tr><th><p>Name</p><th><p>Cost</p><tr><td><p>Pier</p><p>two</p><td><p>4</p></table>`,
			"| Name | Cost |\n|---|---|\n| Pier two | 4 |"},
		"paragraphs in cells without headings": {`<table><tr><td><p>Pier</p><td><p>4</p><tr><td><p>Quay</p><td><p>5</p></table>`,
			"| Pier | 4 |\n| Quay | 5 |"},
		"KaTeX": {`<p>So <span class="katex"><span class="katex-mathml"><math><semantics><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow><annotation encoding="application/x-tex">x^2 * y_1</annotation></semantics></math></span><span class="katex-html" aria-hidden="true">x2</span></span> is it.`,
			"So $x^2 * y_1$ is it."},
		"MathML": {`<p>So <math display=block><msup><mi>x</mi><mn>2</mn></msup><mo>+</mo><mfrac><mi>a</mi><msub><mi>b</mi><mn>1</mn></msub></mfrac><mo>=</mo><msqrt><mi>c</mi></msqrt></math> is it.`,
			`So $$x^{2} + \frac{a}{b_{1}} = \sqrt{c}$$ is it.`},
		"MathML with a picture": {`<p>So <span style="display: none"><math alttext="{\displaystyle E=mc^{2}}"><mi>E</mi></math></span><img aria-hidden=true src=x.svg> is it.`,
			`So $E=mc^{2}$ is it.`},
		"MathJax": {`<p>So <script type="math/tex">x^2</script> is it.`, "So $x^2$ is it."},
		"references": {"<p><a href=' /a b?q=\"x\" '>one</a> <a href='/x\ny'>two</a> <a href='\\p\\q'>three</a> <a href='//h.test/z'>four</a> and with enough other words around them all",
			"[one](http://a.test/a%20b?q=\"x\") [two](http://a.test/xy) [three](http://a.test/p/q) [four](http://h.test/z)"},
		"table": {`<table><caption>Cap</caption><tr><th>A|B<th>C<tr><td>1<td><code>x|y</code><br>z<tr><td>3</table>`,
			"Cap\n\n| A\\|B | C |\n|---|---|\n| 1 | x\\|y z |\n| 3 |  |"},
		"nohead": {`<table><tr><td>1<td>2<tr><td>3<td>4</table>`, "|  |  |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |"},
		"break":  {`<p>one<br>- two<br>1. three<br># four`, "one  \n\\- two  \n1\\. three  \n\\# four"},
		"markup": {`<p>*a* _b_ c_d [e](f) &amp;amp; &lt;b> \g ~~h~~ !<a href="/x">i</a> and more words that follow it`,
			`\*a\* \_b_ c\_d \[e\](f) &amp;amp; &lt;b&gt; \\g \~\~h\~\~ \![i](http://a.test/x) and more`},
	} {
		body := strings.Replace(around, "%s", c.html, 1)
		got, err := ExtractMarkdown([]byte(body), "http://a.test/dir/x", "")
		if err != nil || !strings.Contains(got.Text, c.want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got.Text, c.want)
		}
	}
}

// TestMarkdownOfBase tests that references are relative to the base that the page declares.
func TestMarkdownOfBase(t *testing.T) {
	got, err := ExtractMarkdown([]byte("<head><base href=/other/></head><p>"+long+" <a href=f.pdf>more</a>"),
		"http://a.test/dir/x", "")
	if want := "[more](http://a.test/other/f.pdf)"; err != nil || !strings.Contains(got.Text, want) {
		t.Errorf("%v: %s, want %s", err, got.Text, want)
	}
}

// TestMarkdownOfCharset tests that queries of links are in the charset of the page, as those that a crawl fetches.
func TestMarkdownOfCharset(t *testing.T) {
	got, err := ExtractMarkdown([]byte("<p>"+long+" <a href='/q?s=мир#я'>more</a>"), "http://a.test/", "windows-1251")
	if want := "(http://a.test/q?s=%EC%E8%F0#%D1%8F)"; err != nil || !strings.Contains(got.Text, want) {
		t.Errorf("%v: %s, want %s", err, got.Text, want)
	}
}

// Text from JSON-LD, on a page filled by scripts, becomes paragraphs.
func TestMarkdownOfData(t *testing.T) {
	body := `<script type="application/ld+json">{"@type":"Article","articleBody":"` +
		strings.Repeat("# A sentence *of* data. ", 30) + `"}</script><p>x`
	got, err := ExtractMarkdown([]byte(body), "", "")
	if err != nil || !strings.HasPrefix(got.Text, `\# A sentence \*of\* data.`) {
		t.Errorf("%v: %q", err, got.Text)
	}
}

// However nested the page is, the output is at most a few times as long as the input, and takes little longer than
// plain text.
func TestMarkdownOfHostilePages(t *testing.T) {
	for name, body := range map[string]string{
		"a wide row and many": "<table><tr>" + strings.Repeat("<td>x", 10_000) + strings.Repeat("<tr><td>y", 10_000),
		"quotes":              strings.Repeat("<blockquote>", 60) + strings.Repeat("<p>some words of a paragraph", 5_000),
		"lists":               strings.Repeat("<ul><li>", 60) + strings.Repeat("<li>some words of an item", 5_000),
		"inline":              strings.Repeat("<code><a href=x><b>", 10_000) + strings.Repeat("words ", 10_000),
		"emphasis":            "<p>" + strings.Repeat("<b>x</b> ", 15_000),
		"images":              "<p>" + strings.Repeat("<img src=x>", 15_000) + strings.Repeat("some words ", 100),
		"formulas":            "<p>some words " + strings.Repeat("<math><msup><mi>x</mi>", 10_000),
		"deleted":             "<p>" + strings.Repeat("<del>x</del> <sub>y</sub>", 15_000),
		"tasks":               "<ul>" + strings.Repeat("<li><input type=checkbox>x", 15_000),
		"checkboxes":          "<ul><li>" + strings.Repeat("<input type=checkbox> <b></b>", 15_000) + strings.Repeat("words ", 100),
		"rules":               strings.Repeat("<p>some words<hr>", 15_000),
		"ticks":               "<pre>" + strings.Repeat("`", 500_000),
		"escapes":             "<p>" + strings.Repeat("*_[", 100_000),
		"breaks":              "<p><a href=x>" + strings.Repeat("word<br>", 15_000),
	} {
		var text, markup Text
		plain := cputime.Of(func() { text, _ = Extract([]byte(body), "http://a.test/") })
		took := cputime.Of(func() { markup, _ = ExtractMarkdown([]byte(body), "http://a.test/", "") })
		if took > 20*plain+time.Second {
			t.Errorf("%s: it took %v, as text %v", name, took, plain)
		}
		if len(markup.Text) > 64*len(body) || len(markup.Text) == 0 && len(text.Text) > 0 {
			t.Errorf("%s: %d bytes of %d, as text %d", name, len(markup.Text), len(body), len(text.Text))
		}
	}
}

// Every text can also be extracted as Markdown.
func FuzzMarkdown(f *testing.F) {
	f.Add([]byte("<h1>x</h1><p>a <b>b<i>c</b></i> <a href=x>d</a><ul><li>e<table><tr><td>f<td>g</table><pre>h\n " +
		"i</pre><img src=x alt=y>"))
	f.Add([]byte("<p><b><b><b><b><a href=x><table><tr><th><ol><li><blockquote><pre><code>`"))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := ExtractMarkdown(body, "http://a.test/", "")
		plain, errPlain := Extract(body, "http://a.test/")
		if errors.Is(err, ErrPanic) != errors.Is(errPlain, ErrPanic) {
			t.Errorf("%v, as text %v", err, errPlain)
		}
		letters := func(s string) (n int) {
			for _, r := range s {
				if unicode.IsLetter(r) || unicode.IsDigit(r) {
					n++
				}
			}
			return n
		}
		if got.Text == "" && letters(plain.Text) > 100 {
			t.Errorf("there is no Markdown of %q", plain.Text)
		}
	})
}
