package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/engine/check"
)

// A verb is a reader as a command: its input comes from arguments, or as JSON Lines.
type verb[In, Out any] struct {
	use, about, examples string // about begins with a line that says it all
	read                 func(In) (Out, error)
	args                 func(context.Context, []string, *In) error // reads arguments into what the flags gave
	// holds what the flags give: what a line has if it does not say
	in In
}

func (v *verb[In, Out]) command() *cobra.Command {
	var asJSON, lines bool
	short, _, _ := strings.Cut(v.about, "\n")
	cmd := &cobra.Command{Use: v.use, Short: short, Example: v.examples,
		Long: fmt.Sprintf("%s\n\nAs JSON Lines: %s.", v.about, fieldNames[In, Out]()),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case lines && (asJSON || len(args) > 0):
				return usagef("--jsonl reads standard input: it goes with neither arguments nor --json")
			case lines:
				return readLines(cmd.InOrStdin(), cmd.OutOrStdout(), v.in, v.read)
			}
			return v.answer(cmd, args, asJSON)
		}}
	cmd.SetFlagErrorFunc(readerFlagError)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the answer as indented JSON")
	cmd.Flags().BoolVar(&lines, "jsonl", false, "read and write JSON Lines")
	return cmd
}

// answer answers for people, or in JSON that is indented for them.
func (v *verb[In, Out]) answer(cmd *cobra.Command, args []string, asJSON bool) error {
	if err := v.args(cmd.Context(), args, &v.in); err != nil {
		return err
	}
	out, err := v.read(v.in)
	if err != nil {
		return err
	}
	if note := check.Note(out); note != "" {
		fmt.Fprintln(os.Stderr, note)
	}
	if asJSON {
		return writeJSON(cmd.OutOrStdout(), out)
	}
	return check.Print(cmd.OutOrStdout(), out)
}

// readerFlagError also tells who gave a value that looks like a flag how to give it.
func readerFlagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() != "" {
		err = fmt.Errorf("%w (a value that begins with - comes after --: %s -- -VALUE)", err, cmd.CommandPath())
	}
	return flagError(cmd, err)
}

func writeJSON(w io.Writer, out any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

// fieldNames names the fields of input and output.
func fieldNames[In, Out any]() string {
	needed, others := check.Fields[In]()
	_, out := check.Fields[Out]()
	in := strings.Join(needed, ", ")
	if len(others) > 0 {
		in += ", and if you like " + strings.Join(others, ", ")
	}
	return fmt.Sprintf("in %s; out %s", in, strings.Join(out, ", "))
}
