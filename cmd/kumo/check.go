package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kumo/internal/app/job"
	"kumo/internal/base/weburl"
	"kumo/internal/content/robots"
	"kumo/internal/engine/check"
)

const checkLong = `Show the result of one of kumo's parsers for an input. A crawl uses the same code; the help of a
command describes differences.

FILE may be - for standard input. A URL is fetched as in a crawl, but without robots.txt and delays;
the response is described on standard error. The type of a FILE is given by --content-type, or
else by its name (.html, .xhtml, .xml, .txt, .css, .js, .json).

The result is text. With --json, it is one indented object. With --jsonl, each line of standard
input is an object with the fields named in the command's help, and each line of output is the
object for it; a field with a name in _b64 holds base64. Fields missing in a line have the values
of the command's flags. An invalid line has the fields "error" and "line", its number from 1. An
empty line has no result.

Exit codes are those of kumo --help: 0 for any result; 1 for an invalid input; 2 for wrong usage;
3 when nothing could be fetched.`

const checkExample = `  kumo check robots https://example.com/private/
  kumo check links https://example.com/
  echo '{"url": "HTTP://EXAMPLE.com:80/a/../b"}' | kumo check canon --jsonl`

func checkCommand() *cobra.Command {
	cmd := withVerbs("check", "Show the result of one of kumo's parsers for an input", checkLong, checkRobots(),
		checkURL(), checkCanon(), checkLinks(), checkSitemap(), checkCharset(), checkLang(), checkText(),
		checkDocument(), checkFields(), checkFilter(), checkRender(), checkRefresh(), checkSrcset(), checkMIME())
	cmd.Example = checkExample
	return cmd
}

// withVerbs makes a command that only has subcommands.
func withVerbs(use, short, long string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.ArbitraryArgs, RunE: noVerb,
		DisableFlagsInUseLine: true}
	cmd.AddCommand(verbs...)
	return cmd
}

// noVerb reports a missing or unknown subcommand.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	cmd.SuggestionsMinimumDistance = 2
	meant := ""
	for _, name := range cmd.SuggestionsFor(args[0]) {
		meant += "\n\t" + name
	}
	if meant != "" {
		meant = "\n\nDid you mean this?" + meant + "\n"
	}
	var verbs []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			verbs = append(verbs, c.Name())
		}
	}
	return usagef("unknown command %q for %q: want one of %s%s", args[0], cmd.CommandPath(), strings.Join(verbs, ", "),
		meant)
}

func checkURL() *cobra.Command {
	v := &verb[check.URLIn, check.URLOut]{use: "url INPUT [BASE]", about: "What URL is this?", examples: urlExample,
		read: check.URL, args: urlArgs}
	return v.command()
}

func checkLinks() *cobra.Command {
	v := &verb[check.LinksIn, check.LinksOut]{use: "links FILE|URL [BASE]", about: linksLong, examples: linksExample,
		read: check.Links}
	src := new(source)
	v.args = src.links
	cmd := src.bindRender(v.command())
	contentType(cmd, &v.in.ContentType)
	cmd.Flags().BoolVar(&v.in.ScriptPaths, "script-paths", false, "treat text in scripts that looks like a path as a link")
	return cmd
}

func checkSitemap() *cobra.Command {
	src := new(source)
	v := &verb[check.SitemapIn, check.SitemapOut]{use: "sitemap FILE|URL [BASE]", about: sitemapLong,
		examples: sitemapExample, read: check.Sitemap, args: src.sitemap}
	return src.bind(v.command())
}

func checkCharset() *cobra.Command {
	src := new(source)
	v := &verb[check.CharsetIn, check.CharsetOut]{use: "charset FILE|URL [CONTENT-TYPE]", about: charsetLong,
		examples: charsetExample, read: check.Charset, args: src.charset}
	return src.bind(v.command())
}

func checkLang() *cobra.Command {
	v := &verb[check.LangIn, check.LangOut]{use: "lang FILE|URL", about: langLong, examples: langExample, read: check.Lang}
	src := new(source)
	var declared string
	v.args = func(ctx context.Context, args []string, in *check.LangIn) error {
		return src.lang(ctx, declared, args, in)
	}
	cmd := src.bind(v.command())
	contentType(cmd, &declared)
	return cmd
}

func checkText() *cobra.Command {
	v := &verb[check.PageIn, check.TextOut]{use: "text FILE|URL [BASE]", about: textLong, examples: textExample,
		read: func(in check.PageIn) (check.TextOut, error) {
			out, is, err := check.DocumentText(context.Background(), in, sharedDocuments())
			if is {
				return out, err
			}
			return check.Text(in)
		}}
	src := new(source)
	v.args = src.page
	cmd := src.bindRender(v.command())
	contentType(cmd, &v.in.ContentType)
	return cmd
}

func checkDocument() *cobra.Command {
	v := &verb[check.DocumentIn, check.DocumentOut]{use: "document FILE|URL", about: documentLong,
		examples: documentExample, read: check.Document(sharedDocuments())}
	src := new(source)
	v.args = src.document
	return src.bind(v.command())
}

func checkRefresh() *cobra.Command {
	v := &verb[check.ValueIn, check.RefreshOut]{use: "refresh VALUE", about: "What does a meta refresh contain?",
		examples: refreshExample, read: check.Refresh, args: valueArgs}
	return v.command()
}

func checkSrcset() *cobra.Command {
	v := &verb[check.ValueIn, check.SrcsetOut]{use: "srcset VALUE", about: "Which images does a srcset contain?",
		examples: srcsetExample, read: check.Srcset, args: valueArgs}
	return v.command()
}

func checkMIME() *cobra.Command {
	src := new(source)
	v := &verb[check.MIMEIn, check.MIMEOut]{use: "mime VALUE|FILE|URL [CONTENT-TYPE]", about: mimeLong,
		examples: mimeExample, read: check.MIME, args: src.mime}
	return src.bind(v.command())
}

func checkRobots() *cobra.Command {
	v := &verb[check.RobotsIn, check.RobotsOut]{use: "robots URL | robots FILE URL", about: robotsLong,
		examples: robotsExample, read: check.Robots}
	src := new(source)
	v.args = src.robots
	cmd := src.bind(v.command())
	agent := &v.in.Agent
	cmd.Flags().StringVar(agent, "agent", job.Agent, "use the rules of robots.txt for the crawler with this `NAME`")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if !robots.IsAgent(*agent) {
			return usagef("--agent is %q: give the crawler's name in robots.txt files, such as kumo or "+
				"Googlebot", *agent)
		}
		return nil
	}
	return cmd
}

func contentType(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVar(value, "content-type", "", "parse the body as if it had this `CONTENT-TYPE`")
}

func checkCanon() *cobra.Command {
	v := &verb[check.CanonIn, check.CanonOut]{use: "canon URL", about: "What is the canonical form of a URL?",
		examples: canonExample,
		read:     check.Canon,
		args: func(_ context.Context, args []string, in *check.CanonIn) (err error) {
			in.URL, err = only(args)
			return err
		}}
	cmd := v.command()
	cmd.Flags().StringVar(&v.in.Rules, "rules", "none", "also apply these `RULES`, as kumo crawl --canon does")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if _, err := weburl.ParseRules(v.in.Rules); err != nil {
			return &usage{fmt.Errorf("--rules: %w", err)}
		}
		return nil
	}
	return cmd
}

const fieldsLong = `Which records do rules extract from a page, and which fields are missing?

RULES is a file for kumo crawl --fields, see docs/reference/field-rules.md. For each rule that
applies to the page's URL, the result has all fields: the first value found and its source, or the
reason why it is missing. BASE is the page's URL; for a FILE without BASE, each rule is tried. With
--jsonl the rules are those of --rules, or are given in the line, as text.`

const fieldsExample = `  kumo check fields rules.yaml https://shop.example/p/1
  kumo check fields rules.yaml page.html https://shop.example/p/1    # as if it had been found there
  kumo check fields rules.yaml page.html --json | jq .records`

func checkFields() *cobra.Command {
	v := &verb[check.FieldsIn, check.FieldsOut]{use: "fields RULES FILE|URL [BASE]", about: fieldsLong,
		examples: fieldsExample, read: check.Records}
	src := new(source)
	var file string
	v.args = func(ctx context.Context, args []string, in *check.FieldsIn) error {
		if len(args) == 0 || len(args) > 3 || file == "" && len(args) == 1 {
			return &usage{errors.New("wrong number of arguments: give a file of rules, a page, and optionally a URL")}
		}
		if file == "" {
			file, args = args[0], args[1:]
		}
		if err := readRules(in, file); err != nil {
			return err
		}
		return src.page(ctx, args, &in.PageIn)
	}
	cmd := src.bindRender(v.command())
	contentType(cmd, &v.in.ContentType)
	cmd.Flags().StringVar(&file, "rules", "", "read rules from `FILE` instead of RULES")
	cmd.PreRunE = func(*cobra.Command, []string) error { return readRules(&v.in, file) }
	return cmd
}

// readRules reads a file of rules. They are validated when they are used.
func readRules(in *check.FieldsIn, file string) error {
	if file == "" {
		return nil
	}
	text, err := readFile(file)
	if err != nil {
		return err
	}
	in.Rules, in.File = string(text), file
	return nil
}
