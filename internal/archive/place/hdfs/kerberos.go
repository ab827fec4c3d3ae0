package hdfs

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	krb "github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"kumo/internal/base/advice"
)

// login uses the identity that Kerberos's own tools would: that of the keytab KRB5_CLIENT_KTNAME, which lasts for
// weeks, or the tickets of kinit.
func login() (*krb.Client, error) {
	conf := cmp.Or(os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf")
	cfg, err := config.Load(conf)
	if err != nil {
		return nil, advice.With(fmt.Errorf("the cluster requires Kerberos: %s: %w", conf, err),
			"set KRB5_CONFIG to Kerberos's configuration file")
	}
	if file := withoutType(os.Getenv("KRB5_CLIENT_KTNAME")); file != "" {
		return fromKeytab(file, cfg)
	}
	tickets, err := ticketFile()
	if err != nil {
		return nil, err
	}
	cache, err := credentials.LoadCCache(tickets)
	if err != nil {
		return nil, advice.With(fmt.Errorf("the cluster requires Kerberos, and there are no tickets: %s: %w", tickets,
			err),
			"run kinit, or set KRB5_CLIENT_KTNAME to a keytab")
	}
	client, err := krb.NewFromCCache(cache, cfg)
	if err != nil {
		return nil, advice.With(fmt.Errorf("the tickets in %s: %w", tickets, err), "run kinit again")
	}
	return client, nil
}

func fromKeytab(file string, cfg *config.Config) (*krb.Client, error) {
	keys, err := keytab.Load(file)
	if err != nil {
		return nil, fmt.Errorf("keytab %s: %w", file, err)
	}
	if len(keys.Entries) == 0 {
		return nil, fmt.Errorf("keytab %s has no keys", file)
	}
	who := keys.Entries[0].Principal
	client := krb.NewWithKeytab(strings.Join(who.Components, "/"), who.Realm, keys, cfg)
	if err := client.Login(); err != nil {
		return nil, fmt.Errorf("keytab %s: %w", file, err)
	}
	return client, nil
}

// ticketFile returns the file with kinit's tickets. Tickets that are not in a file cannot be read.
func ticketFile() (string, error) {
	name := os.Getenv("KRB5CCNAME")
	if name == "" {
		return fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid()), nil
	}
	if file := withoutType(name); file != "" {
		return file, nil
	}
	return "", advice.With(fmt.Errorf("KRB5CCNAME is %s: only tickets in a file can be read", name),
		"run kinit -c FILE:/tmp/krb5cc_kumo, and set KRB5CCNAME to that")
}

// withoutType returns the path of FILE:path or path; "" for other types.
func withoutType(name string) string {
	kind, path, typed := strings.Cut(name, ":")
	switch {
	case !typed:
		return name
	case kind == "FILE":
		return path
	}
	return ""
}
