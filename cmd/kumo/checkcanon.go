package main

import (
	"context"

	"github.com/spf13/cobra"

	"kumo/internal/check"
)

func checkCanon() *cobra.Command {
	var rules string
	cmd := example(canonExample,
		reader("canon URL", "What is a URL's canonical form?", check.Canon, func(_ context.Context, args []string) (in check.CanonIn, err error) {
			in.Rules = rules
			in.URL, err = only(args)
			return in, err
		}))
	cmd.Flags().StringVar(&rules, "rules", "none", "rewrite it further by these `RULES`, as kumo crawl --canon does")
	return cmd
}
