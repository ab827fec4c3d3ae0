package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"kumo/internal/check"
)

const checkLong = `Show what one of kumo's readers makes of an input. A crawl reads in the same way.

With --jsonl each line of standard input is an object with the fields that the verb's help names, and each line of output
is the object for it; what cannot be read has a field "error". Without it the input is given as arguments.`

func checkCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "check", Short: "Show what a reader makes of an input", Long: checkLong}
	cmd.AddCommand(
		reader("robots FILE URL", "May a URL be fetched, by this robots.txt?", check.Robots, func(args []string) (in check.RobotsIn, err error) {
			in.Agent = "kumo"
			if err := count(args, 2); err != nil {
				return in, err
			}
			in.URL = args[1]
			in.Robots, err = readFile(args[0])
			return in, err
		}),
		reader("url INPUT [BASE]", "What URL is this?", check.URL, func(args []string) (in check.URLIn, err error) {
			if len(args) == 2 {
				in.Base, args = args[1], args[:1]
			}
			in.Input, err = only(args)
			return in, err
		}),
		reader("canon URL", "What is a URL's canonical form?", check.Canon, func(args []string) (in check.CanonIn, err error) {
			in.URL, err = only(args)
			return in, err
		}),
		reader("links FILE [URL]", "Which links has a page?", check.Links, func(args []string) (in check.PageIn, err error) {
			in.URL = "http://localhost/"
			if len(args) == 2 {
				in.URL, args = args[1], args[:1]
			}
			name, err := only(args)
			if err != nil {
				return in, err
			}
			in.HTML, err = readFile(name)
			return in, err
		}),
		reader("charset FILE [CONTENT-TYPE]", "Which charset has a body?", check.Charset, func(args []string) (in check.CharsetIn, err error) {
			if len(args) == 2 {
				in.ContentType, args = args[1], args[:1]
			}
			name, err := only(args)
			if err != nil {
				return in, err
			}
			in.Body, err = readFile(name)
			return in, err
		}),
		reader("refresh VALUE", "What does a meta refresh say?", check.Refresh, value),
		reader("srcset VALUE", "Which images has a srcset?", check.Srcset, value),
		reader("mime VALUE", "What is a media type made of?", check.MIME, value),
	)
	return cmd
}

// reader makes a command of a reader: its input comes from arguments, or as JSON Lines.
func reader[In, Out any](use, short string, read func(In) (Out, error), fromArgs func([]string) (In, error)) *cobra.Command {
	var lines bool
	cmd := &cobra.Command{Use: use, Short: short,
		Long: fmt.Sprintf("%s\n\nAs JSON Lines: in %s, out %s.", short, fields[In](), fields[Out]()),
		RunE: func(cmd *cobra.Command, args []string) error {
			if lines {
				return readLines(cmd.InOrStdin(), cmd.OutOrStdout(), read)
			}
			in, err := fromArgs(args)
			if err != nil {
				return err
			}
			out, err := read(in)
			if err != nil {
				return err
			}
			enc := json.NewEncoder(cmd.OutOrStdout())
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			return enc.Encode(out)
		}}
	cmd.Flags().BoolVar(&lines, "jsonl", false, "read and write JSON Lines")
	return cmd
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
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

func value(args []string) (in check.ValueIn, err error) {
	in.Value, err = only(args)
	return in, err
}

func only(args []string) (string, error) {
	if err := count(args, 1); err != nil {
		return "", err
	}
	return args[0], nil
}

func count(args []string, n int) error {
	if len(args) != n {
		return &usage{errors.New("wrong number of arguments")}
	}
	return nil
}

// readFile reads a file, or standard input for "-".
func readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(os.Stdin, maxLine))
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, &usage{err}
	}
	return data, nil
}
