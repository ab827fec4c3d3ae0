package main

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"kumo/internal/base/secret"
)

const secretLong = `Make the secret that the nodes of a cluster share. With it they know each other and encrypt what they say; who has it can
do anything in the cluster, so keep it as you keep a password. Copy it to each machine, and name it there with --secret-file, or in the
environment variable KUMO_SECRET. Without a secret a cluster is on one machine only.`

func secretCommand() *cobra.Command {
	return withVerbs(
		"secret",
		"Make the secret of a cluster",
		secretLong,
		&cobra.Command{Use: "new [FILE]", Short: "Make a secret, and print it or write it to a new file",
			Args: cobra.MaximumNArgs(1),
			Long: secretLong, Example: "  kumo secret new cluster.secret\n  KUMO_SECRET=$(kumo secret new)",
			RunE: func(cmd *cobra.Command, args []string) error {
				text := secret.New().Text() + "\n"
				if len(args) == 0 {
					_, err := io.WriteString(cmd.OutOrStdout(), text)
					return err
				}
				return writeSecret(args[0], text)
			}},
	)
}

// writeSecret writes a file that nobody else can read. It never writes over one: that could be the secret of a cluster.
func writeSecret(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the secret: %w", err)
	}
	_, err = f.WriteString(text)
	return cmp.Or(err, f.Close())
}

// secretVariable is where a secret may be, too.
const secretVariable = "KUMO_SECRET"

// readSecret reads the secret from a file, or else from the environment; without either there is none. It warns of a
// file that others may read.
func readSecret(file string, warn func(string)) (secret.Secret, error) {
	text, source := os.Getenv(secretVariable), secretVariable
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return secret.Secret{},
				usagef("--secret-file: %w: make it once with kumo secret new %s, and copy it to all", err, file)
		}
		if info, err := os.Stat(file); err == nil && isOpen(info) {
			warn(fmt.Sprintf("%s can be read by other users of this machine: chmod 600 %s", file, file))
		}
		text, source = string(data), file
	}
	s, err := secret.Parse(text)
	switch {
	case err != nil:
		return s, usagef("%s: %w: copy it again from a node of the cluster, or make one with kumo secret new", source, err)
	case file != "" && s.IsZero():
		return s, usagef("%s is empty: make a secret with kumo secret new", file)
	}
	return s, nil
}
