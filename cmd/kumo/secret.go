package main

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"kumo/internal/base/secret"
)

const secretLong = `Create the secret that the nodes of a cluster share. Nodes use it to authenticate each other and to
encrypt their messages. Everyone who has it has full control of the cluster, so protect it like a
password. Copy it to each machine, and name it there with --secret-file, or set the environment
variable KUMO_SECRET. Without a secret, a cluster is limited to one machine.`

func secretCommand() *cobra.Command {
	return withVerbs(
		"secret",
		"Create the secret of a cluster",
		secretLong,
		&cobra.Command{Use: "new [FILE]", Short: "Create a secret, and print it or write it to a new file",
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

// writeSecret writes a file that only its owner can read. It never overwrites a file, which could be the secret of a
// cluster.
func writeSecret(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the secret: %w", err)
	}
	_, err = f.WriteString(text)
	return cmp.Or(err, f.Close())
}

// secretVariable is the environment variable for the secret.
const secretVariable = "KUMO_SECRET"

// readSecret reads the secret from a file, or else from the environment. It returns no secret if neither is given. It
// warns if other users can read the file.
func readSecret(file string, warn func(string)) (secret.Secret, error) {
	text, source := os.Getenv(secretVariable), secretVariable
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return secret.Secret{},
				usagef("--secret-file: %w: create it once with kumo secret new %s, and copy it to all machines", err, file)
		}
		if info, err := os.Stat(file); err == nil && isOpen(info) {
			warn(fmt.Sprintf("%s can be read by other users of this machine: chmod 600 %s", file, file))
		}
		text, source = string(data), file
	}
	s, err := secret.Parse(text)
	switch {
	case err != nil:
		return s, usagef("%s: %w: copy it again from a node of the cluster, or create one with kumo secret new", source, err)
	case file != "" && s.IsZero():
		return s, usagef("%s is empty: create a secret with kumo secret new", file)
	}
	return s, nil
}
