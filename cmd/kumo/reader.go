package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"kumo/internal/check"
)

// reader makes a command of a reader: its input comes from arguments, or as JSON Lines. about begins with a line that says it all.
func reader[In, Out any](use, about string, read func(In) (Out, error), fromArgs func(context.Context, []string) (In, error)) *cobra.Command {
	var asJSON, lines bool
	short, _, _ := strings.Cut(about, "\n")
	cmd := &cobra.Command{Use: use, Short: short,
		Long: fmt.Sprintf("%s\n\nAs JSON Lines: in %s, out %s.", about, fields[In](), fields[Out]()),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case lines && (asJSON || len(args) > 0):
				return usagef("--jsonl reads standard input: it goes with neither arguments nor --json")
			case lines:
				return readLines(cmd.InOrStdin(), cmd.OutOrStdout(), read)
			}
			in, err := fromArgs(cmd.Context(), args)
			if err != nil {
				return err
			}
			out, err := read(in)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), out)
			}
			return check.Print(cmd.OutOrStdout(), out)
		}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the answer as indented JSON")
	cmd.Flags().BoolVar(&lines, "jsonl", false, "read and write JSON Lines")
	return cmd
}

// example puts examples into a command's help.
func example(text string, cmd *cobra.Command) *cobra.Command {
	cmd.Example = text
	return cmd
}

func writeJSON(w io.Writer, out any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

const maxLine = 64 << 20

// readLines answers each line. A line that cannot be read is answered with an error, and is never the end.
func readLines[In, Out any](r io.Reader, w io.Writer, read func(In) (Out, error)) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for sc.Scan() {
		var in In
		if len(strings.TrimSpace(sc.Text())) == 0 {
			continue
		}
		err := json.Unmarshal(sc.Bytes(), &in)
		var answer any
		if err == nil {
			answer, err = read(in)
		}
		if err != nil {
			answer = map[string]string{"error": err.Error()}
		}
		if err := enc.Encode(answer); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return sc.Err()
}

// fields lists a struct's names in JSON.
func fields[T any]() string {
	var names []string
	for f := range reflect.TypeFor[T]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
