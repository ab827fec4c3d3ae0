package maintext

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Code is kept completely, whatever the classes of its colors are. A date in it is not the page's date.
func TestColoredCode(t *testing.T) {
	code := `<pre>\header { <span class="related">tagline</span> = "<span class="s">x</span>" }
<span class="hljs-comment"># since</span>
2019-12-04
</pre><p><code>2018-01-05</code>`
	got, err := extract([]byte(strings.Replace(around, "%s", code, 1)), "", now)
	want := "\\header { tagline = \"x\" }\n# since\n2019-12-04\n"
	if err != nil || !strings.Contains(got.Text, want) || got.Published != "" {
		t.Errorf("%v, published %q\n%s\nwant\n%s", err, got.Published, got.Text, want)
	}
}

// squeeze does what strings.Fields does, without its slices.
func TestSqueeze(t *testing.T) {
	pieces := []string{" ", "\t", "\n", "\u00A0", "\u00AD", "\u0085", "\u3000", "\u2003", "a", "é", "字", "\xC2", "\xE2\x80"}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		s := ""
		for range rng.IntN(8) {
			s += pieces[rng.IntN(len(pieces))]
		}
		want := strings.Join(strings.Fields(strings.ReplaceAll(s, "\u00AD", "")), " ")
		if got := squeeze(s); got != want {
			t.Fatalf("%q: got %q, want %q", s, got, want)
		}
	}
}

// manualPage returns a page like those of documentation generators: sections with prose, colored code, signatures
// and a table, 100 KB.
func manualPage() []byte {
	var b strings.Builder
	b.WriteString(`<!DOCTYPE html><html lang="en"><head><title>module — Manual</title></head><body>
<div class="related" role="navigation"><ul><li><a href="index.html">index</a> |</li></ul></div>
<div class="document"><div class="body" role="main"><section id="module"><h1>module<a href="#module">¶</a></h1>`)
	for i := 0; b.Len() < 100<<10; i++ {
		fmt.Fprintf(&b, `<section id="s%d"><h2>Part %d<a href="#s%d">¶</a></h2>
<p>%s See <a class="reference internal" href="other.html#f%d" title="other.f"><code class="xref py py-func"><span class="pre">other.f()</span></code></a> and <em>the rest</em>, number %d.</p>
<div class="highlight"><pre><span></span>`, i, i, i, long, i, i)
		for j := range 12 {
			fmt.Fprintf(&b, `<span class="gp">&gt;&gt;&gt; </span><span class="n">value</span><span class="w"> </span><span class="o">=</span><span class="w"> </span><span class="n">call</span><span class="p">(</span><span class="mi">%d</span><span class="p">)</span>
`, i+j)
		}
		fmt.Fprintf(&b, `</pre></div><dl class="py function"><dt class="sig" id="f%d"><span class="sig-name descname"><span class="pre">f</span></span><span class="sig-paren">(</span><em class="sig-param"><span class="n"><span class="pre">x</span></span></em><span class="sig-paren">)</span></dt><dd><p>%s</p></dd></dl>
<table><tr><th>name<th>meaning<tr><td><code class="docutils"><span class="pre">x%d</span></code><td>%s</table></section>`,
			i, long, i, long)
	}
	b.WriteString(`</section></div></div></body></html>`)
	return []byte(b.String())
}

func BenchmarkDocumentation(b *testing.B) {
	body := manualPage()
	for name, markdown := range map[string]*string{"text": nil, "markdown": new(string)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if t, err := read(body, "https://example.org/module.html", now, markdown); err != nil || t.Text == "" {
					b.Fatal(t.Text, err)
				}
			}
		})
	}
}
