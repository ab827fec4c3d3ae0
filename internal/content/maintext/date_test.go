package maintext

import "testing"

// TestPublished tests publication dates in each supported notation and place.
func TestPublished(t *testing.T) {
	ld := func(date string) string {
		return `<script type="application/ld+json">{"@type":"NewsArticle","datePublished":"` + date +
			`","dateModified":"2025-01-02"}</script>`
	}
	const (
		meta     = `<meta property="article:published_time" content="2024-05-17T10:11:12.345Z">`
		modified = `<meta property="article:modified_time" content="2025-01-02T03:04:05Z">`
	)
	tests := []struct{ name, html, url, want string }{
		{"JSON-LD", ld("2024-05-17T10:11:12+02:00"), "", "2024-05-17T10:11:12+02:00"},
		{"JSON-LD, no zone", ld("2024-05-17 10:11"), "", "2024-05-17"},
		{"JSON-LD, day", ld("2024-05-17"), "", "2024-05-17"},
		{"JSON-LD with a line feed", "<script type=application/ld+json>{\"@type\":\"Article\",\"headline\":\"a\nb\"," +
			`"datePublished":"2024-05-17",}</script>`, "", "2024-05-17"},
		{"JSON-LD before meta", meta + ld("2024-05-16"), "", "2024-05-16"},
		{"JSON-LD without sense", ld("soon") + meta, "", "2024-05-17T10:11:12Z"},
		{"JSON-LD in a graph", `<script type="application/ld+json">{"@graph":[{"@type":"Article","datePublished":"2024-05-17T10:11Z"}]}</script>`,
			"", "2024-05-17T10:11:00Z"},
		{"Open Graph", meta, "", "2024-05-17T10:11:12Z"},
		{"Open Graph, zone without colon", `<meta property="article:published_time" content="2024-05-17T10:11:12+0200">`, "",
			"2024-05-17T10:11:12+02:00"},
		{"a change comes first", modified + meta, "", "2024-05-17T10:11:12Z"},
		{"only a change", modified, "", ""},
		{"Dublin Core", `<meta name="DC.date.issued" content="2024-05-17">`, "", "2024-05-17"},
		{"Dublin Core, plain", `<meta name="DC.date" content="2024-05-17">`, "", "2024-05-17"},
		{"Dublin Core terms", `<meta name="dcterms.created" content="2024-05-17">`, "", "2024-05-17"},
		{"citation", `<meta name="citation_publication_date" content="2024/05/17">`, "", "2024-05-17"},
		{"HTTP date", `<meta name="date" content="Fri, 17 May 2024 10:11:12 GMT">`, "", "2024-05-17T10:11:12Z"},
		{"microdata", `<span itemprop="datePublished" content="2024-05-17T10:11:12Z">last May</span>`, "",
			"2024-05-17T10:11:12Z"},
		{"time", `<p>By me, <time datetime="2024-05-17T10:11:12+09:00">in May</time>`, "", "2024-05-17T10:11:12+09:00"},
		{"time, day", `<p>By me, <time datetime="2024-05-17">in May</time>`, "", "2024-05-17"},
		{"URL", "<p>x", "https://example.org/2024/05/17/x", "2024-05-17"},
		{"URL with hyphens", "<p>x", "https://example.org/2024-05-17-x.html", "2024-05-17"},
		{"URL in eight digits", "<p>x", "https://example.org/a/t20240517_9.html", "2024-05-17"},
		{"URL in year and day", "<p>x", "https://example.org/n1/2024/0517/c1-2.html", "2024-05-17"},
		{"URL with a number", "<p>x", "https://example.org/12345678/2024/", ""},
		{"URL of a month", "<p>x", "https://example.org/2024/05/", ""},
		{"digits", `<div class=date>17.05.2024`, "", "2024-05-17"},
		{"English", `<div class=date>May 17, 2024`, "", "2024-05-17"},
		{"German", `<div class=date>17. Mai 2024`, "", "2024-05-17"},
		{"French", `<div class=date>17 mai 2024`, "", "2024-05-17"},
		{"Spanish", `<div class=fecha>17 de mayo de 2024`, "", "2024-05-17"},
		{"Polish", `<div class=x>17 maja 2024, 10:11</div>`, "", "2024-05-17"},
		{"Russian", `<div class=date>17 мая 2024 г.`, "", "2024-05-17"},
		{"Turkish", `<div class=date>17 Mayıs 2024`, "", "2024-05-17"},
		{"Arabic", `<div class=date>17 مايو 2024`, "", "2024-05-17"},
		{"Hungarian", `<div class=date>2024. május 17.`, "", "2024-05-17"},
		{"American digits", `<div class=date>05/17/2024`, "", "2024-05-17"},
		{"a year of two digits", `<div class=date>17.05.24`, "", "2024-05-17"},
		{"a year of two digits, a name", `<div class=date>5.6.23, Ann`, "", "2023-06-05"},
		{"a section", `<ul><li>1.1.10 Getting started</li><li>1.1.11 Reading on</li></ul>`, "", ""},
		{"a deeper section", `<ul><li>2.1.1.10</li><li>1.1.10.2 Reading on</li></ul>`, "", ""},
		{"a name in one word", `<div class=itemPostDate>am 17.05.2024 22:30`, "", "2024-05-17"},
		{"a lone date", `<p>17.05.2024</p>`, "", "2024-05-17"},
		{"a day of a change", `<div class=lastUpdate>x 17.05.2024 is when the last change of this page was made by us</div>`,
			"", ""},
		{"Chinese", `<div class=c12>来源:新报 2024年5月17日 10:11`, "", "2024-05-17"},
		{"Japanese", `<div class=c12>2024年05月17日(金)`, "", "2024-05-17"},
		{"Korean", `<div class=c12>입력 2024년 5월 17일`, "", "2024-05-17"},
		{"Korean in digits", `<div class=c12>2024. 5. 17.`, "", "2024-05-17"},
		{"first of a month", `<div class=date>1 May 2024`, "", "2024-05-01"},
		{"first of a month in the URL", "<p>x", "https://example.org/2024/05/01/x", "2024-05-01"},
		{"month", `<meta name="date" content="2024-05">`, "", ""},
		{"no such day", `<div class=c12>2024年2月31日`, "", ""},
		{"a day that a text tells of", "<p>" + long + long + "2001年9月1日", "", ""},
		{"a change", `<div class=page-info>Last modified on <a class=x>17.05.2024</a>`, "", ""},
		{"a change in text", `<p><span>Last updated on</span> <span>17.05.2024</span>`, "", ""},
		{"a change beside it", `<p class=meta>Last updated on <time>2025-01-02</time>, published on <time>2024-05-17</time>`,
			"", "2024-05-17"},
		{"a title of a span", `<h1>T</h1><p>by me <span class=age title="2024-05-17T10:11:12">2 years ago</span>`, "",
			"2024-05-17"},
		{"Cyrillic with a name", `<p><i>Ирина Белова, February 7, 2007</i>`, "", "2007-02-07"},
		{"a list", `<meta property=og:type content=product><p>x<div class=review><span class=date>17.05.2024</span></div>`,
			"", ""},
		{"the future", `<meta property="article:published_time" content="2026-03-03T00:00:00Z">`, "", ""},
		{"never set", ld("1970-01-01T00:00:00Z"), "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := extract([]byte("<title>T</title>"+tt.html), tt.url, now)
			if err != nil || got.Published != tt.want {
				t.Errorf("published %q, %v; want %q", got.Published, err, tt.want)
			}
		})
	}
}

// TestAuthor tests authors in each supported place.
func TestAuthor(t *testing.T) {
	tests := []struct{ name, html, want string }{
		{"a link", `<p>Text by <a rel=author href=/u/1>Ann Lee</a>`, "Ann Lee"},
		{"microdata", `<div itemprop=author><img alt=x><span itemprop=name>Ann Lee</span>, editor</div>`, "Ann Lee"},
		{"a class", `<div class="post-author">By Ann Lee | 3 May 2024</div>`, "Ann Lee"},
		{"in German", `<span class=autor>Von: Anna Lehm</span>`, "Anna Lehm"},
		{"no name", `<div class=author>Read everything that has been written by this author and many more on our pages</div>`,
			""},
		{"a rank", `<div class=post_author><strong><a href=/u>Ann Lee</a></strong><br>Junior Member</div>`, "Ann Lee"},
		{"a label", `<p class=author><a href=/p>Post</a> by <a href=/u>Ann Lee</a></p>`, "Ann Lee"},
		{"two links", `<p class=byline>By <a href=/u>Ann Lee</a> and <a href=/v>Bo Ray</a> | 3 May 2024`, "Ann Lee; Bo Ray"},
		{"two names", `<p class=byline>By Ann Lee and Bo Ray`, "Ann Lee; Bo Ray"},
		{"two names in meta", `<meta name=author content="Ann Lee, Bo Ray and Cy Orr">`, "Ann Lee; Bo Ray; Cy Orr"},
		{"family name first", `<meta name=author content="Lee, Ann">`, "Lee, Ann"},
		{"a job", `<meta name=author content="Ann Lee, Senior Editor">`, "Ann Lee, Senior Editor"},
		{"a number", `<p class=author>bo99</p>`, "bo99"},
		{"said", `<h1>T</h1><p>Started by Ann Lee, <span>January 2, 2024</span></p><p>` + long, "Ann Lee"},
		{"said before a link", `<h1>T</h1><div>Submitted by <a href=/u>ann</a></div><p>` + long, "ann"},
		{"said in French", `<h1>T</h1><p>Publié par Ann de Lee le 3 mai 2024</p><p>` + long, "Ann de Lee"},
		{"said in Chinese", `<h1>T</h1><p>作者：林晓雨</p><p>` + long, "林晓雨"},
		{"a line", `<h1>T</h1><p>By Ann Lee</p><p>` + long, "Ann Lee"},
		{"a link to the author's page", `<h1>T</h1><div><a href=/authors/ann>Ann Lee</a></div><p>` + long, "Ann Lee"},
		{"not by a person", `<h1>T</h1><p>Posted by mistake</p><p>` + long, ""},
		{"no byline", `<h1>T</h1><p>By popular demand</p><p>` + long, ""},
		{"prose", `<h1>T</h1><p>` + long + ` Written by Bo Ray.</p>`, ""},
		{"below the text", `<h1>T</h1><p>` + long + `</p><p>` + long + `</p><p>Written by Bo Ray</p>`, ""},
		{"a book", `<h1>T</h1><p>` + long + ` A book by <a href=/b>Bo Ray</a>.</p>`, ""},
		{"an address", `<div class=author>https://example.org/ann</div>`, ""},
		{"nothing", `<p>x`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := extract([]byte("<title>T</title>"+tt.html), "", now); err != nil || got.Author != tt.want {
				t.Errorf("author %q, %v; want %q", got.Author, err, tt.want)
			}
		})
	}
}
