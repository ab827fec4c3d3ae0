package maintext

import (
	"fmt"
	"strings"
	"testing"
)

// story returns paragraphs with a name, each with a sentence.
func story(name string, paragraphs int, format string) string {
	var b strings.Builder
	for i := range paragraphs {
		fmt.Fprintf(&b, format, fmt.Sprintf("%s %d tells a little more about boats, harbours and the weather of that week, "+
			"and about the people who stayed at home.", name, i))
	}
	return b.String()
}

// TestKinds reads pages whose main text was replaced by other parts, or lacked some of its own.
func TestKinds(t *testing.T) {
	article := "<article><h1>Boats</h1>" + story("Article", 3, "<p>%s</p>") + "</article>"
	tests := []struct {
		name, html   string
		want, others []string
	}{
		{"a consent layer longer than the article", article + "<div id=gdpr-layer>" + story("Consent", 14, "<div>%s</div>"),
			[]string{"Article 0", "Article 2"}, []string{"Consent"}},
		{"hidden text longer than the article", article + `<div style="display: none">` + story("Unseen", 9, "<p>%s</p>"),
			[]string{"Article 0"}, []string{"Unseen"}},
		{"unnamed comments longer than the article", "<main>" + article + "</main><div><ol>" +
			story("Reader", 12, "<li><div><a href=/u>Sam</a></div><div>%s</div>"), []string{"Article 2"}, []string{"Reader"}},
		{"unnamed teasers longer than the article", article + "<section>" +
			story("Teaser", 20, "<div><h3><a href=/s>Story</a></h3><div>%s</div></div>"), []string{"Article 2"},
			[]string{"Teaser"}},
		{"posts of a thread", "<h1>Boats?</h1><div class=post>" + story("First", 2, "<p>%s</p>") +
			"</div><div class=post>" + story("Second", 2, "<p>%s</p>") + "</div>", []string{"First 0", "Second 1"}, nil},
		{"noscript", "<div id=app></div><noscript><h1>Boats</h1>" + story("Post", 3, "<p>%s</p>") + "</noscript>",
			[]string{"Post 0", "Post 2"}, nil},
		{"streamed", "<div id=root><p>Loading</p></div><div hidden id='S:0'><main>" + story("Part", 3, "<p>%s</p>") +
			"</main></div>", []string{"Part 0", "Part 2"}, nil},
		{"a wrapper beside a sidebar", "<div class='content with-sidebar'>" + story("Row", 5, "<table><tr><td>%s</table>") +
			"</div><div><p>We write about boats since 1911.</div>", []string{"Row 0", "Row 4"}, nil},
		{"a hash with the letters ad", "<main>" + story("Column", 3, "<div id=w-node-b5343ad0-d1b4><p>%s</p></div>"),
			[]string{"Column 0", "Column 2"}, nil},
		{"a listing in links", "<h1>Jobs</h1><ul>" + story("Sailor", 9, "<li><a href=/j><h3>Job</h3><p>%s</p></a>"),
			[]string{"Sailor 0", "Sailor 8"}, nil},
		{"a form around the page", "<form><div><a href=/>Home</a></div>" + story("Rope", 9, "<div><h3>x</h3><span>%s</span></div>") +
			"</form>", []string{"Rope 0", "Rope 8"}, nil},
		{"a block of a list between blocks", "<div class=col>" + story("Text", 2, "<div class=t><div><p>%s</p></div></div>") +
			"<div class=t><div><h2>Not for</h2><ul><li>young firms<li>old <a href=/>firms</a></ul></div></div>" +
			story("More", 2, "<div class=t><div><p>%s</p></div></div>"),
			[]string{"Text 0", "Not for\nyoung firms\nold firms\n", "More 1"}, nil},
		{"rows and items of links", "<article><p>" + long + "<table><tr><th>Ship<th>Port<tr><td><a href=/s>Anna</a>" +
			"<td><a href=/p>Kiel</a></table><ol><li><a href=/r>Ships of the coast, a history</a></ol><p>" + long,
			[]string{"Ship\tPort\nAnna\tKiel\nShips of the coast, a history\n"}, nil},
		{"a figure and a formula", "<article><p>" + long + "<figure><img src=i><figcaption>A ship.</figcaption></figure>" +
			"<p>Then <math><mrow><mi>x</mi><mo>=</mo><mn>1</mn></mrow></math> holds.<p>" + long,
			[]string{"A ship.\nThen x=1 holds."}, nil},
		{"line numbers", "<article><p>" + long + "<table><tr><td class=linenos><pre>1\n2</pre><td class=code><pre>x = 1\n y</pre>" +
			"</table><p>" + long, []string{"\nx = 1\n y\n"}, []string{"1\n2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := extract([]byte("<title>Boats</title>"+tt.html), "", now)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.Text, want) {
					t.Errorf("no %q in\n%s", want, got.Text)
				}
			}
			for _, other := range tt.others {
				if strings.Contains(got.Text, other) {
					t.Errorf("%q in\n%s", other, got.Text)
				}
			}
		})
	}
}

// TestKindsOfPages tests the kind of a page, and that comments, reviews and names of posters are not its text.
func TestKindsOfPages(t *testing.T) {
	tests := []struct{ name, html, kind, text, comments string }{
		{"a product with reviews", `<body class=single-product><h1>Rope</h1><div class=d><p>` + long +
			`</div><div id=reviews>` + story("Review", 2, "<div class=review><b class=author>Sam</b><p>%s</div>") +
			`</div><section><h2>More</h2>` + strings.Repeat("<div><a href=/p>A rope of another color</a></div>", 4) + `</section>`,
			"product", long, strings.TrimSpace(story("Review", 2, "%s\n"))},
		{"an article with comments", "<article><h1>Boats</h1>" + story("Article", 4, "<p>%s</p>") +
			"</article><ol class=comment-list>" +
			story("Reader", 2, "<li class=comment><cite class=author>Sam</cite><div class=comment-body>%s</div>") + "</ol>",
			"article", strings.TrimSpace(story("Article", 4, "%s\n")), strings.TrimSpace(story("Reader", 2, "%s\n"))},
		{"posts with names and ranks", "<h1>Boats?</h1>" +
			story("Post", 3, "<div class=post><div class=who>Sam<br>Senior member</div><div class=body>%s</div></div>"),
			"forum", strings.TrimSpace(story("Post", 3, "%s\n")), ""},
		{"a list of teasers", "<h1>News</h1><ul>" + story("News", 5, "<li><h3><a href=/n>A longer title of news</a></h3><p>%s</p>"),
			"listing", strings.TrimSpace(story("News", 5, "A longer title of news\n%s\n")), ""},
		{"boxes with headings", "<h1>Movers</h1>" + story("Box", 4, "<div><div><h3>Fast</h3><p>%s</p></div></div>"),
			"service", strings.TrimSpace(story("Box", 4, "Fast\n%s\n")), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := extract([]byte("<title>Boats</title>"+tt.html), "", now)
			if err != nil || got.Kind != tt.kind || got.Text != tt.text || got.Comments != tt.comments {
				t.Errorf("%v, kind %q, text\n%s\ncomments\n%s\nwant %q,\n%s\nand\n%s", err, got.Kind, got.Text, got.Comments, tt.kind,
					tt.text, tt.comments)
			}
		})
	}
}

// TestLocalDates tests dates whose order, digits or time zone depend on the page, and dates of other texts.
func TestLocalDates(t *testing.T) {
	tests := []struct{ name, html, want string }{
		{"American order", "<html lang=en-US><p class=date>03/04/2022", "2022-03-04"},
		{"the weekday decides", "<p class=date>Thu, 07/06/2023 - 10:00", "2023-07-06"},
		{"Arabic digits", "<p class=date>١٧ مايو ٢٠٢٣", "2023-05-17"},
		{"in the title attribute", `<p class="entry-date published" title="2023-05-17T10:20:00">yesterday`, "2023-05-17"},
		{"the page's own zone", `<meta property="article:published_time" content="2023-11-09T06:35:29+00:00">` +
			`<time datetime="2023-11-08T22:35:29-08:00">`, "2023-11-08T22:35:29-08:00"},
		{"of the page", `<script type="application/ld+json">{"@type":"WebPage","datePublished":"2021-03-04"}</script>`,
			"2021-03-04"},
		{"not of a sidebar", "<p><span class=date>May 17, 2023</span><aside><time datetime=2024-05-05>5 May</time></aside>",
			"2023-05-17"},
		{"not of a comment", "<div class=comments><time datetime=2024-05-05>5 May</time></div><p>" + long, ""},
		{"not in the text behind it", "<p class=date>May 17, 2023<p>It opens on <time datetime=2024-05-05>5 May</time>",
			"2023-05-17"},
		{"not of the copyright", "<p>" + long + "<footer>Copyright © 19.12.2019</footer>", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := extract([]byte(tt.html), "", now); err != nil || got.Published != tt.want {
				t.Errorf("published %q, %v; want %q", got.Published, err, tt.want)
			}
		})
	}
}

// TestNames tests that authors are names.
func TestNames(t *testing.T) {
	tests := []struct{ name, html, want string }{
		{"several links", "<p class=byline>By <a rel=author href=/a>Kay Rope</a> &amp; <a rel=author href=/b>Bo Sail</a>",
			"Kay Rope; Bo Sail"},
		{"a date behind", "<p class=author>By Scott Harbour March 5, 2024", "Scott Harbour"},
		{"a weekday behind", "<p class=author><b>bob</b> &raquo; Tue Aug 5, 2014", "bob"},
		{"a date alone", "<p class=author-date>December 3, 2023", ""},
		{"an account", "<meta name=author content=admin><p class=author>Ann Lee", "Ann Lee"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := extract([]byte(tt.html), "", now); err != nil || got.Author != tt.want {
				t.Errorf("author %q, %v; want %q", got.Author, err, tt.want)
			}
		})
	}
}
