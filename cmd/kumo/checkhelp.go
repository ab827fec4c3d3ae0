package main

// What the help of each verb of kumo check says.

const linksLong = `Which links has a page?

Links of HTML, style sheets, plain text, sitemaps and feeds are read, and those of header fields if a URL was fetched. BASE is
the URL that a page is taken to lie at; without it a FILE lies at http://localhost/. Without a type a FILE is HTML, unless it
begins as something else. A packed body is read as a sitemap; a crawl does so only where one is named as a sitemap.`

const sitemapLong = `What does a sitemap or feed list?

Sitemaps and indexes of sitemaps (XML, or a URL a line), RSS, Atom and JSON feeds are read, packed with gzip or not. BASE is the URL
that the list is taken to lie at; without it a FILE lies at http://localhost/. A priority that is not given is 0.5. A crawl follows
the first 50,000 URLs of a list.`

const charsetLong = `Which charset has a body?

It is told by a byte order mark, CONTENT-TYPE or that of the answer, a meta element at the beginning, or else by how the text
looks. A body that is no text is an error. A crawl also heeds a meta element that comes later.`

const langLong = `Which language is a text in?

The 27 known languages are ar bo de en es fa fil fr hi id it ja kk ko ky lo mn ms my ne pt ps ru tg ur vi zh; any other is
"other". It is told from the first 4 KiB; a crawl takes one. An HTML page is read as a crawl reads it: by its first sentences, and
without script and confidence. To tell what a page's main text is about, and the language it declares, see kumo check text.`

const mimeLong = `What is a media type made of, and what is a body?

What begins with a registered top-level type (text/, image/, x-something/) and is no file is taken for a media type.`

const textLong = `What is a page about?

A URL or FILE that is no HTML is an error. BASE is the URL that the page is taken to lie at; its path may name the day.

Menus, comments and the like are left out of the text; it has a line for each paragraph. The day and the language are those
that the page names.`

const robotsLong = `May a URL be fetched, by its host's robots.txt or by the one in a file?

The exit code is 0 for yes and for no: both are answers. Where no robots.txt can be had for a fault of the server (a status
of 5xx or 429) the answer is no, as RFC 9309 has it; where nothing answers, the exit code is 3, and a crawl would fetch
nothing either.`

const (
	urlExample = `  kumo check url ../b?x#y https://example.com/a/c
  kumo check url http://bücher.example/`
	canonExample = `  kumo check canon 'HTTP://EXAMPLE.com:80/%7ea/../b?#x'
  kumo check canon --rules tracking,sort 'https://example.com/?b&a&utm_source=mail'`
	linksExample = `  kumo check links https://example.com/
  kumo check links page.html https://example.com/dir/    # as if it had been found there
  kumo check links --content-type 'text/html; charset=koi8-r' page.html`
	charsetExample = `  kumo check charset https://example.com/
  kumo check charset page.html 'text/html; charset=koi8-r'`
	sitemapExample = `  kumo check sitemap https://example.com/sitemap.xml
  kumo check sitemap sitemap.xml.gz https://example.com/
  kumo check sitemap --json https://example.com/feed | jq -r '.entries[].url'`
	langExample = `  kumo check lang text.txt
  kumo check lang https://example.com/
  echo 'Der Zug fährt erst um halb neun.' | kumo check lang -`
	textExample = `  kumo check text https://example.com/article
  kumo check text page.html https://example.com/2024/05/17/    # the URL may name the day
  kumo check text --json page.html | jq -r .text`
	refreshExample = `  kumo check refresh '5; url=/next'
  kumo check refresh -- '-5; url=/next'    # a value that begins with -`
	srcsetExample = `  kumo check srcset 'a.png 1x, b.png 2x'`
	mimeExample   = `  kumo check mime 'Text/HTML; Charset="UTF-8"'
  kumo check mime https://example.com/report.pdf    # what is it called, what is it?
  kumo check mime report.pdf text/html`
	robotsExample = `  kumo check robots https://example.com/private/
  kumo check robots robots.txt https://example.com/private/ --agent Googlebot
  kumo check robots --json https://example.com/private/ | jq -e .allowed`
)
