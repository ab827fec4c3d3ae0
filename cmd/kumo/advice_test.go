package main

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

// Commands named in advice texts and documents exist.
func TestCommandsThatTextsNameExist(t *testing.T) {
	root := &cobra.Command{Use: "kumo"}
	addVerbs(root)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	pages, err := filepath.Glob("../../docs/*.md")
	below, err2 := filepath.Glob("../../docs/*/*.md")
	docs := append(pages, below...)
	if err := cmp.Or(err, err2); err != nil || len(docs) == 0 {
		t.Fatal("no documents", err)
	}
	typed := regexp.MustCompile("(?m)(?:`|^\\$ |^ {2,})kumo ([a-z]+)(?: ([a-z]+(?:-[a-z]+)*)\\b)?")
	said := regexp.MustCompile(`kumo ([a-z]+)(?: ([a-z]+(?:-[a-z]+)*)\b)?`)
	named := 0
	for _, file := range append(docs, "../../README.md", "../../internal/state/stall/stall.go") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pattern := typed
		if filepath.Ext(file) == ".go" {
			pattern = said
		}
		for _, words := range pattern.FindAllStringSubmatch(string(text), -1) {
			named++
			verb := child(root, words[1])
			if verb == nil || isGroup(verb) && words[2] != "" && child(verb, words[2]) == nil {
				t.Errorf("%s: there is no %q", file, words[0])
			}
		}
	}
	if named < 50 {
		t.Errorf("only %d commands were found", named)
	}
}

// isGroup reports whether a command only groups subcommands.
func isGroup(cmd *cobra.Command) bool {
	return slices.Contains([]string{"check", "cluster", "sim"}, cmd.Name())
}

func child(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	return nil
}
