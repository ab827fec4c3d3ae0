package main

import (
	"bufio"
	"bytes"
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
	"kumo/internal/view/text"
)

// A verb is a parser as a command. Its input comes from arguments, or as JSON Lines.
type verb[In, Out any] struct {
	use, about, examples string // about starts with a summary line
	read                 func(In) (Out, error)
	args                 func(context.Context, []string, *In) error // adds the arguments to the input
	// values of flags, which are the defaults of a line
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
				return usagef("--jsonl reads standard input: remove the arguments and --json")
			case lines:
				return readLines(cmd.InOrStdin(), cmd.OutOrStdout(), v.in, v.read)
			}
			return v.answer(cmd, args, asJSON)
		}}
	cmd.SetFlagErrorFunc(readerFlagError)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print indented JSON")
	cmd.Flags().BoolVar(&lines, "jsonl", false, "read and write JSON Lines")
	return cmd
}

// answer prints the result as text or as indented JSON.
func (v *verb[In, Out]) answer(cmd *cobra.Command, args []string, asJSON bool) error {
	if err := v.args(cmd.Context(), args, &v.in); err != nil {
		return err
	}
	out, err := v.read(v.in)
	if err != nil {
		return err
	}
	return printAnswer(cmd, out, asJSON)
}

func printAnswer(cmd *cobra.Command, out any, asJSON bool) error {
	if note := check.Note(out); note != "" {
		fmt.Fprintln(os.Stderr, note)
	}
	if asJSON {
		return writeJSON(cmd.OutOrStdout(), out)
	}
	return check.Print(cmd.OutOrStdout(), out)
}

// readerFlagError adds a hint to the error for a value that looks like a flag.
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

func fieldNames[In, Out any]() string {
	needed, others := check.Fields[In]()
	_, out := check.Fields[Out]()
	in := strings.Join(needed, ", ")
	if len(others) > 0 {
		in += ", and optionally " + strings.Join(others, ", ")
	}
	return fmt.Sprintf("in %s; out %s", in, strings.Join(out, ", "))
}

const maxLine = 64 << 20 // maximum length of a line in bytes

// A lineError is the result for an invalid line.
type lineError struct {
	Error string `json:"error"`
	Line  int    `json:"line"` // line number, from 1
}

// readLines writes a result for each line. Missing fields have the values of defaults. The result of an invalid line is
// an error, and reading continues. An empty line has no result.
func readLines[In, Out any](r io.Reader, w io.Writer, defaults In, read func(In) (Out, error)) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, end := nextLine(lines)
		if end != nil && !errors.Is(end, io.EOF) && !errors.Is(end, errLong) {
			return end
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := text.JSON(w, answerTo(line, end, n, defaults, read)); err != nil {
				return err
			}
		}
		if errors.Is(end, io.EOF) {
			return nil
		}
	}
}

func jsonLines[T any](w io.Writer, all []T) error {
	for i := range all {
		if err := text.JSON(w, &all[i]); err != nil {
			return err
		}
	}
	return nil
}

// answerTo returns the result of a line, or an error in its place.
func answerTo[In, Out any](line []byte, end error, n int, in In, read func(In) (Out, error)) any {
	err := end
	if !errors.Is(end, errLong) {
		err = check.Unmarshal(line, &in)
	}
	if err != nil {
		return lineError{err.Error(), n}
	}
	out, err := read(in)
	if err != nil {
		return lineError{err.Error(), n}
	}
	return out
}

var errLong = fmt.Errorf("longer than %d MiB", maxLine>>20)

// nextLine reads a line. If it is too long, nextLine returns its beginning and errLong.
func nextLine(r *bufio.Reader) (line []byte, err error) {
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && err == nil:
			return line, errLong
		default:
			return line, err
		}
	}
}
