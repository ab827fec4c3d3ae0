package main

// The help of the subcommands of kumo check.

const linksLong = `Which links does a page contain?

Links are read from HTML, style sheets, plain text, sitemaps and feeds, and from header fields if a
URL was fetched. BASE is the URL of the page; without it, a FILE is at http://localhost/. A FILE
without a type is HTML, unless it starts like another type. A compressed body is read as a sitemap;
a crawl does that only if it is named as a sitemap.`

const sitemapLong = `What does a sitemap or feed list?

Sitemaps and sitemap indexes (XML, or one URL per line), RSS, Atom and JSON feeds are read, also if
compressed with gzip. BASE is the URL of the list; without it, a FILE is at http://localhost/. The
default priority is 0.5. A crawl follows the first 50,000 URLs of a list.`

const charsetLong = `Which charset does a body have?

It is determined by a byte order mark, CONTENT-TYPE or that of the response, a meta element at the
beginning, or else from the text itself. A body that is not text is an error. A crawl also uses a
meta element further down.`

const langLong = `Which language is a text in?

The 27 known languages are ar bo de en es fa fil fr hi id it ja kk ko ky lo mn ms my ne pt ps ru tg ur vi zh;
any other is "other". The first 4 KiB are used; a crawl uses 1 KiB. For an HTML page, the first sentences are used as
in a crawl, without script and confidence. For the language of a page's main text, and its declared language, see
kumo check text.`

const mimeLong = `What are the parts of a media type, and what type is a body?

An argument is a media type if it begins with a registered top-level type (text/, image/,
x-something/) and is not a file.`

const textLong = `What is the main text of a page?

A URL or FILE that is not HTML is an error. BASE is the page's URL; its path may contain the date.

The text omits menus, comments and similar parts. It has one line for each paragraph. Date and
language are those declared by the page. The kind of page is article, forum, product, listing,
documentation, service or other. Comments of readers and reviews of customers are a field of their
own; the posts of a forum are its text.`

const documentLong = `What are the text, links and metadata of a document?

Office documents (docx, pptx, xlsx, odt, odp, ods) and e-books (epub) have text and links; images
(jpeg, png, webp, gif, tiff, heif, avif) have metadata. The format is detected by the content, not by
the name. Links are as written in the document. "problem" says why text is missing: encrypted, broken,
too-large or another one, with the cause. A file of another format is an error.`

const robotsLong = `May a URL be fetched, by its host's robots.txt or by the one in a file?

The exit code is 0 for yes and for no. If robots.txt is unavailable because of a server error (a
status of 5xx or 429), the result is no, as RFC 9309 requires. If the host does not answer, the exit
code is 3; a crawl would not fetch anything either.`

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
	documentExample = `  kumo check document report.docx
  kumo check document https://example.com/slides.pptx
  kumo check document --json book.epub | jq -r '.links[].url'`
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
