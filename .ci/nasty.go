//go:build ignore

// Nasty writes pages of broken HTML, made from a seed, with the links that kumo finds in them, for .ci/links to
// compare: for each page a line of JSON, {"file": "seed 17", "html": ..., "links": ["kind url", ...]}. With -tree the
// pages also have elements that mean something only at some places of the tree which the HTML standard makes of a page;
// kumo, which makes none, takes their links wherever they stand.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"

	"kumo/internal/base/page"
	"kumo/internal/content/parse"
)

// pieces are tags, ends of them and what else changes how the text behind it is read. {} stands for a new URL.
var pieces = split(`<a href={}>|<A HREF="{}">|<a href='{}' href=no>|</a>|</A x=">">|<img src={}>|<IMG/SRC={}/>|<img src="{}"alt=x>|<image src={}>
<a href="?a={}&copy=2&amp;lt&notit;&#x26;&#38">|<a href=?{}&lt&gt;x&AMP>|<a href = "{}"title=">">|<a title='"' href={}>|<a "href"={}>|<a =href={}>|<a href=>
<a href={}/>|<a/href={}>|<a/ /href={}>|<a href="{}"/href=no>|<a xlink:href={}>|<a x='{}" href={}>|<a href={}"x>|<a href={}'>|<a href=" {} ">
<link rel=next href={}>|<link rel="stylesheet icon" href={}>|<link href={}>|<script src={}></script>|<script src={} />|<iframe src={}></iframe>|<iframe src={}>
<video src={} poster={}>|</video>|<audio src={}>|<source srcset="{} 1x, {} 2x">|<object data={}>|</object>|<embed src={}>|<track src={}>|<area href={}>
<blockquote cite={}>|<q cite={}>|<ins cite={}>|<p style="x:url({})">|<a style='x:url("{}")'>|<style>x{y:url({})}</style>|<style>
</style>|</STYLE/>|<title>|</title>|</title |<textarea>|</textarea>|<xmp>|</xmp>|<noembed>|</noembed>|<noframes>|</noframes>|<noscript>|</noscript>
<script>|</script>|<script><!--|--></script>|<script><!-- <script>|</script x>|<!--|-->|--!>|<!-->|<!--->|<!---->|<!-|<!|<!>|<?|<?x ?>|</|</>|</ >|<|>|< a href={}>
<![CDATA[|]]>|<svg>|</svg>|<svg/>|<SVG><path/>|<math>|</math>|<foreignObject>|</foreignObject>|<desc>|</desc>|<svg><title>|<mi>|</mi>|<mtext>
<annotation-xml encoding=text/html>|<annotation-xml>|</annotation-xml>|<svg><a xlink:href={} />|<svg><a href={}>|<svg><image href={} />|<svg><use href={}#x />
<svg><script href={} />|<font>|<font color=x>|</font>|<g>|</g>|<p>|</p>|</br>|<br>|<div>|<b>|<i>|<table>|<ul>|<li>|<h1>|<nobr>|<span/>
<template>|</template>|<template><a href={}></template>|<iframe srcdoc="<a href={}><img src='{}'>">|<iframe srcdoc='&lt;a href=&quot;{}&quot;>'></iframe>|<iframe srcdoc="<!-- <a href={}>">
<plaintext|<div <a href={}>|<a href={}<b>|<a <b href={}>|<meta http-equiv=refresh content="1;url={}">|<meta property=og:image content={}>|<a b c=d e='f' g="h" href={}>
"|'|=|/|&|;|-|!|x|é|漢| ` + "|\r|\t|\x00|<a\x00 href={}>|<a \x00href={}>|<a " +
	"href=\x00{}>|<a\thref={}\r>|<a\fhref={}>|<a\vhref={}>")

// treePieces mean something at their place only. What kumo makes of them is said in .ci/links.
var treePieces = split(`<select>|</select>|<option>|<frameset>|</frameset>|<frame src={}>|<body background={}>|<html manifest={}>|<td background={}>
<tr background={}>|<tbody background={}>|<table background={}>|<caption>|<colgroup>|<form action={}>|</form>|<input name=x>|<input type=image src={}>|<button>|</button>|<base href=/b/{}/>
</div>|</b>|</i>|</table>|</ul>|</h1>|<head>|</head>|</body>|</html>|<plaintext>`)

// split makes a list of pieces, which stand between "|" or line feeds.
func split(pieces string) []string { return strings.Split(strings.ReplaceAll(pieces, "\n", "|"), "|") }

// makePage puts a page together, and breaks some of it.
func makePage(random *rand.Rand, pieces []string) string {
	var b strings.Builder
	for range 1 + random.IntN(40) {
		piece := pieces[random.IntN(len(pieces))]
		for strings.Contains(piece, "{}") {
			piece = strings.Replace(piece, "{}", fmt.Sprintf("u%d", b.Len()+random.IntN(8)), 1)
		}
		if random.IntN(12) == 0 {
			piece = piece[:random.IntN(len(piece)+1)]
		}
		b.WriteString(piece)
	}
	return strings.ToValidUTF8(b.String(), "")
}

func main() {
	pages := flag.Int("pages", 5000, "how many pages to make")
	first := flag.Uint64("seed", 1, "the first page's seed; each has the next")
	tree := flag.Bool("tree", false, "put elements in that matter at some places only")
	flag.Parse()
	if *tree {
		pieces = append(pieces, treePieces...)
	}
	out := bufio.NewWriter(os.Stdout)
	lines := json.NewEncoder(out)
	parser := parse.New(parse.Config{})
	var pg page.Page
	for seed := *first; seed < *first+uint64(*pages); seed++ {
		html := makePage(rand.New(rand.NewPCG(seed, 0)), pieces)
		resp := &page.Response{URL: "http://h.test/d/page.html", Status: 200, Body: []byte(html),
			Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}}
		if err := parser.Parse(resp, &pg); err != nil {
			log.Fatal(err)
		}
		links := make([]string, 0, len(pg.Links))
		for _, l := range pg.Links {
			links = append(links, l.Kind.String()+" "+l.URL)
		}
		if err := lines.Encode(map[string]any{"file": fmt.Sprint("seed ", seed), "html": html, "links": links}); err != nil {
			log.Fatal(err)
		}
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}
