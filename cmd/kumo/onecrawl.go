package main

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"
)

// Commands that look at one crawl name its folder as an argument, or by --out where arguments are something else. These
// two let whoever remembers one way use it with the others, too.

var oneFolder = between(1, 1, "which crawl? name its folder, and one")

func oneFolderAtMost(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("one crawl at a time: name one folder, not %d", len(args))
	}
	return nil
}

// between requires a number of arguments from least to most. Otherwise wanted is the usage error.
func between(least, most int, wanted string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usagef("%s", wanted)
		}
		return nil
	}
}

// orOut lets --out stand for the first argument of a command, which is a crawl's folder.
func orOut(cmd *cobra.Command) *cobra.Command {
	var dir string
	cmd.Flags().StringVarP(&dir, "out", "o", "", "the crawl's `FOLDER`, in place of the argument")
	check, run := cmd.Args, cmd.RunE
	var all []string
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		all = args
		if len(args) == 0 { // the environment is read later, and what is typed wins
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

// orArgument lets the only argument of a command stand for --out.
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
