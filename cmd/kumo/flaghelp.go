package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/app/setting"
)

const (
	helpWidth = 100
	helpAll   = "help-all" // name of the flag, and annotation of commands that have it
)

// withSettingsHelp adds --help-all to a command with crawl settings. --help shows only the basic settings.
func withSettingsHelp(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolFunc(helpAll, "print help for all flags", func(string) error {
		if cmd.Annotations == nil {
			cmd.Annotations = map[string]string{}
		}
		cmd.Annotations[helpAll] = ""
		return pflag.ErrHelp
	})
	return cmd
}

// flagUsages returns the help of a command's flags: its own, then the crawl settings by group.
func flagUsages(cmd *cobra.Command) string {
	groups := map[setting.Group][]*pflag.Flag{}
	_, all := cmd.Annotations[helpAll]
	settings := cmd.Flags().Lookup(helpAll) != nil
	hidden := 0
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		s := setting.Find(f.Name)
		switch {
		case f.Hidden || f.Deprecated != "":
		case !settings || s == nil:
			groups[""] = append(groups[""], f)
		case all || s.Basic:
			groups[s.Group] = append(groups[s.Group], f)
		default:
			hidden++
		}
	})
	var b strings.Builder
	for _, group := range append(slices.Clone(setting.Groups), "") {
		if len(groups[group]) == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		title := cmp.Or(string(group), "Flags")
		if group == "" && settings {
			title = "Other flags"
		}
		fmt.Fprintf(&b, "%s:\n%s", title, usagesOf(groups[group]))
	}
	if hidden > 0 {
		fmt.Fprintf(&b, "\n%s --%s prints %d more flags; docs/reference/settings.md describes all.\n",
			cmd.CommandPath(), helpAll, hidden)
	}
	return strings.TrimRight(b.String(), "\n")
}

func usagesOf(flags []*pflag.Flag) string {
	const indent = 30 // column of the descriptions
	var b strings.Builder
	for _, f := range flags {
		name, usage := pflag.UnquoteUsage(f)
		line := "      --" + f.Name
		if f.Shorthand != "" {
			line = "  -" + f.Shorthand + ", --" + f.Name
		}
		if f.NoOptDefVal != "" && !strings.HasPrefix(f.Value.Type(), "bool") {
			line += "[=" + name + "]"
		} else if name != "" {
			line += " " + name
		}
		if f.DefValue != "" && !slices.Contains([]string{"0", "false", "[]", "0s"}, f.DefValue) {
			usage += " (default " + f.DefValue + ")"
		}
		if len(line) > indent-2 {
			b.WriteString(line + "\n")
			line = ""
		}
		fmt.Fprintf(&b, "%-*s", indent, line)
		column := indent
		for i, word := range strings.Fields(usage) {
			switch {
			case i > 0 && column+1+len(word) > helpWidth:
				fmt.Fprintf(&b, "\n%*s", indent, "")
				column = indent
			case i > 0:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += len([]rune(word))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// helpTemplate returns cobra's usage template, with flagUsages for the flags.
func helpTemplate(root *cobra.Command) string {
	cobra.AddTemplateFunc("flagUsages", flagUsages)
	const own = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	template := root.UsageTemplate()
	if !strings.Contains(template, own) {
		panic("kumo: cobra's template of usage has changed")
	}
	return strings.Replace(template, own, "{{flagUsages .}}", 1)
}
