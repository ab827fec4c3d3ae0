package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"kumo/internal/app/job"
	"kumo/internal/app/node"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print kumo's version and build", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, _ := debug.ReadBuildInfo()
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine(info))
			return err
		}}
}

// versionLine returns the version, the protocol between nodes, the commit if known, Go's version and the platform.
func versionLine(info *debug.BuildInfo) string {
	parts := []string{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if commit := commitOf(info); commit != "" {
		parts = append([]string{commit}, parts...)
	}
	parts = append([]string{fmt.Sprintf("protocol %d", node.Protocol)}, parts...)
	return fmt.Sprintf("kumo %s (%s)", job.Version, strings.Join(parts, ", "))
}

// commitOf returns the commit that was built and its date; "" without a repository.
func commitOf(info *debug.BuildInfo) string {
	vcs := buildSettings(info)
	commit := vcs["vcs.revision"]
	if len(commit) < 12 {
		return ""
	}
	commit = "commit " + commit[:12]
	if day, _, found := strings.Cut(vcs["vcs.time"], "T"); found {
		commit += " of " + day
	}
	if vcs["vcs.modified"] == "true" {
		commit += " with changes"
	}
	return commit
}

func buildSettings(info *debug.BuildInfo) map[string]string {
	settings := map[string]string{}
	if info != nil {
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	return settings
}
