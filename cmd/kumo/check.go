package main

import (
	"context"

	"github.com/spf13/cobra"

	"kumo/internal/check"
	"kumo/internal/robots"
	"kumo/internal/wire"
)

const checkLong = `Show what one of kumo's readers makes of an input. A crawl reads in the same way.

A FILE may also be - for standard input. A URL is fetched as a crawl would fetch it, but without asking robots.txt and without
waiting; what came is told on standard error.

The answer is written for people. With --json it is one indented object. With --jsonl each line of standard input is an
object with the fields that the verb's help names, and each line of output is the object for it; what cannot be read has a
field "error".

Exit codes are those of kumo --help: 0 for an answer, whatever it says; 1 for an input that cannot be read; 2 for wrong
usage; 3 when nothing could be fetched.`

const checkExample = `  kumo check robots https://example.com/private/
  kumo check links https://example.com/
  echo '{"url": "HTTP://EXAMPLE.com:80/a/../b"}' | kumo check canon --jsonl`

func checkCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "check", Short: "Show what a reader makes of an input", Long: checkLong, Example: checkExample}
	src := &source{}
	src.bind(cmd.PersistentFlags())
	cmd.AddCommand(
		checkRobots(src),
		example(urlExample, reader("url INPUT [BASE]", "What URL is this?", check.URL, urlArgs)),
		checkCanon(),
		example(linksExample, reader("links FILE|URL [BASE]", "Which links has a page?", check.Links, src.links)),
		example(charsetExample, reader("charset FILE|URL [CONTENT-TYPE]", "Which charset has a body?", check.Charset, src.charset)),
		example(langExample, reader("lang FILE", "Which language is a text in?", check.Lang, langArgs)),
		example(textExample, reader("text FILE|URL [BASE]", textLong, check.Text, src.links)),
		example(refreshExample, reader("refresh VALUE", "What does a meta refresh say?", check.Refresh, valueArgs)),
		example(srcsetExample, reader("srcset VALUE", "Which images has a srcset?", check.Srcset, valueArgs)),
		example(mimeExample, reader("mime VALUE|FILE|URL [CONTENT-TYPE]", "What is a media type made of, and what is a body?", check.MIME, src.mime)),
	)
	return cmd
}

const (
	urlExample = `  kumo check url ../b?x#y https://example.com/a/c
  kumo check url http://bücher.example/`
	canonExample = `  kumo check canon 'HTTP://EXAMPLE.com:80/%7ea/../b?#x'
  kumo check canon --rules tracking,sort 'https://example.com/?b&a&utm_source=mail'`
	linksExample = `  kumo check links https://example.com/
  kumo check links page.html https://example.com/dir/    # as if it had been found there`
	charsetExample = `  kumo check charset https://example.com/
  kumo check charset page.html 'text/html; charset=koi8-r'`
	langExample = `  kumo check lang text.txt
  echo 'Der Zug fährt erst um halb neun.' | kumo check lang -`
	textExample = `  kumo check text https://example.com/article
  kumo check text page.html https://example.com/2024/05/17/    # the URL may name the day
  kumo check text --json page.html | jq -r .text`
	refreshExample = `  kumo check refresh '5; url=/next'`
	srcsetExample  = `  kumo check srcset 'a.png 1x, b.png 2x'`
	mimeExample    = `  kumo check mime 'Text/HTML; Charset="UTF-8"'
  kumo check mime https://example.com/report.pdf    # what is it called, what is it?
  kumo check mime report.pdf text/html`
	robotsExample = `  kumo check robots https://example.com/private/
  kumo check robots robots.txt https://example.com/private/ --agent Googlebot
  kumo check robots --json https://example.com/private/ | jq -e .allowed`
)

const textLong = `What is a page about?

Menus, comments and the like are left out of the text; it has a line for each paragraph. The day and the language are those
that the page names.`

const robotsLong = `May a URL be fetched, by its host's robots.txt or by the one in a file?

The exit code is 0 for yes and for no: both are answers. Where no robots.txt can be had for a fault of the server (a status
of 5xx or 429) the answer is no, as RFC 9309 has it; where nothing answers, the exit code is 3, and a crawl would fetch
nothing either.`

func checkRobots(src *source) *cobra.Command {
	agent := wire.Agent
	cmd := example(robotsExample,
		reader("robots URL | robots FILE URL", robotsLong, check.Robots, func(ctx context.Context, args []string) (in check.RobotsIn, err error) {
			if !robots.IsAgent(agent) {
				return in, usagef("--agent is %q: the name by which robots.txt files know a crawler is wanted, such as kumo or Googlebot", agent)
			}
			return src.robots(ctx, agent, args)
		}))
	cmd.Flags().StringVar(&agent, "agent", agent, "read robots.txt as this `NAME` of a crawler")
	return cmd
}
