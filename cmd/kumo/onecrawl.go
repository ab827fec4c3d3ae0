package main

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"
)

// Commands that inspect one crawl take its folder as an argument, or with --out if they have other arguments. The
// following functions make both forms work for all of them.

var oneFolder = between(1, 1, "which crawl? name its folder, and only one")

func oneFolderAtMost(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("one crawl at a time: name one folder, not %d", len(args))
	}
	return nil
}

func someFolders(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("which crawl? name its folder, or those of its parts")
	}
	return nil
}

// between requires a number of arguments from least to most. Otherwise, the error is wanted.
func between(least, most int, wanted string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usagef("%s", wanted)
		}
		return nil
	}
}

// orOut lets --out replace the first argument of a command, a crawl's folder.
func orOut(cmd *cobra.Command) *cobra.Command {
	var dir string
	cmd.Flags().StringVarP(&dir, "out", "o", "", "the crawl's `FOLDER`, instead of the argument")
	check, run := cmd.Args, cmd.RunE
	var all []string
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		all = args
		if len(args) == 0 { // the environment is applied later; the command line takes precedence
			dir = cmp.Or(dir, os.Getenv(variable("out")))
		}
		if dir != "" {
			all = append([]string{dir}, args...)
		}
		return check(cmd, all)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return run(cmd, all) }
	return cmd
}

// orArgument lets the only argument of a command replace --out.
func orArgument(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch out := cmd.Flags().Lookup("out"); {
		case len(args) == 0:
			return nil
		case len(args) > 1 || out.Changed:
			return usagef("one crawl at a time: name one folder")
		}
		return cmd.Flags().Set("out", args[0])
	}
	return cmd
}
