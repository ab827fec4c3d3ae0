package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/app/job"
	"kumo/internal/view/results"
)

// A simFolder is where an experiment's files go; "" is nowhere. Beside its files lies what they are of.
type simFolder struct {
	dir  string
	made results.Experiment
}

// bind adds --out.
func (s *simFolder) bind(f *pflag.FlagSet, what string) {
	f.StringVar(&s.dir, "out", "", "write "+what+" into `DIR`, for kumo serve DIR to show")
	f.Lookup("out").Annotations = map[string][]string{noVariable: {"true"}} // KUMO_OUT is where a crawl is
}

// keeps has a command leave in the folder what it was and what it said.
func (s *simFolder) keeps(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if s.dir == "" {
			return run(cmd, args)
		}
		s.made = results.Experiment{Experiment: cmd.Name(), About: cmd.Short, Command: typedAs(cmd), Version: job.Version,
			Statements: []results.Statement{}, Tables: []string{}, Pictures: []results.Picture{}}
		out := &simOutput{Writer: cmd.OutOrStdout(), made: &s.made}
		cmd.SetOut(out)
		if err := run(cmd, args); err != nil {
			return err
		}
		s.made.Printed = out.printed.String()
		if err := s.made.Write(s.dir); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		return nil
	}
	return cmd
}

// typedAs is how a command was called, but for where its files go.
func typedAs(cmd *cobra.Command) string {
	words := []string{cmd.CommandPath()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if _, is := f.Value.(pflag.SliceValue); is {
			value = strings.Trim(value, "[]")
		}
		switch {
		case f.Name == "out":
		case f.Value.Type() == "bool" && value == "true":
			words = append(words, "--"+f.Name)
		case strings.ContainsAny(value, " '\"$\\*?") || value == "":
			words = append(words, fmt.Sprintf("--%s='%s'", f.Name, strings.ReplaceAll(value, "'", `'\''`)))
		default:
			words = append(words, "--"+f.Name+"="+value)
		}
	})
	return strings.Join(words, " ")
}

// A simOutput notes what an experiment prints.
type simOutput struct {
	io.Writer
	made    *results.Experiment
	printed bytes.Buffer
}

// mostPrinted is how much of it is kept.
const mostPrinted = 256 << 10

func (o *simOutput) Write(b []byte) (int, error) {
	o.printed.Write(b[:min(len(b), max(mostPrinted-o.printed.Len(), 0))])
	return o.Writer.Write(b)
}

// printStatements says whether statements of a paper are seen, by which numbers, and why not, below what they are of.
func printStatements(w io.Writer, all []results.Statement) {
	if o, is := w.(*simOutput); is {
		o.made.Statements = append(o.made.Statements, all...)
	}
	of := ""
	for _, s := range all {
		if s.Of != of {
			fmt.Fprintf(w, "\nOf %s\n", s.Of)
			of = s.Of
		}
		fmt.Fprintf(w, "  %s  %s: %s\n", map[bool]string{true: "seen    ", false: "not seen"}[s.Seen], s.Statement,
			s.Measured)
		if s.Why != "" {
			fmt.Fprintf(w, "            %s\n", s.Why)
		}
	}
}

// prepare makes the folder and tries whether it can be written to, before the work is done.
func (s *simFolder) prepare() error {
	if s.dir == "" {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	f, err := os.CreateTemp(s.dir, ".kumo-*")
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// table writes a table as CSV, if there is a folder.
func (s *simFolder) table(name string, write func(io.Writer) error) error {
	s.made.Tables = append(s.made.Tables, name+".csv")
	return s.write(name+".csv", write)
}

// picture draws a picture as SVG, if there is a folder.
func (s *simFolder) picture(name, title string, draw func(w io.Writer, title string) error) error {
	s.made.Pictures = append(s.made.Pictures, results.Picture{File: name + ".svg", Title: title})
	return s.write(name+".svg", func(w io.Writer) error { return draw(w, title) })
}

// write writes a file whole, if there is a folder.
func (s *simFolder) write(name string, write func(io.Writer) error) error {
	if s.dir == "" {
		return nil
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, name), b.Bytes(), 0o666); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}
