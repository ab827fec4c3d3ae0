package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"kumo/internal/engine/check"
)

const fieldsLong = `What do rules make of a page, and why not more?

RULES is a file as kumo crawl --fields takes it: docs/fields.md says how it is written. Of each rule that is for the page's URL
the answer has all fields: the first value that was found and which source has it, or else why it is missing. BASE is the URL
that the page is taken to lie at; for a FILE without one each rule is tried. With --jsonl the rules are those of --rules, or
of the line, as text.`

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
			return &usage{errors.New("wrong number of arguments: a file of rules and a page are wanted, and a URL if you like")}
		}
		if file == "" {
			file, args = args[0], args[1:]
		}
		if err := takeRules(in, file); err != nil {
			return err
		}
		return src.page(ctx, args, &in.PageIn)
	}
	cmd := src.bind(v.command())
	contentType(cmd, &v.in.ContentType)
	cmd.Flags().StringVar(&file, "rules", "", "read the rules of this `FILE`, in the place of RULES")
	cmd.PreRunE = func(*cobra.Command, []string) error { return takeRules(&v.in, file) }
	return cmd
}

// takeRules reads a file of rules, which are checked where they are used.
func takeRules(in *check.FieldsIn, file string) error {
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
