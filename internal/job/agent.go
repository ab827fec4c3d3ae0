package job

import "fmt"

// Version is kumo's version.
const Version = "0.1.0"

// Agent is the product token that robots.txt files know kumo by.
const Agent = "kumo"

// UserAgent is the default User-Agent.
func UserAgent(contact string) string {
	if contact == "" {
		return fmt.Sprintf("Mozilla/5.0 (compatible; %s/%s)", Agent, Version)
	}
	return fmt.Sprintf("Mozilla/5.0 (compatible; %s/%s; +%s)", Agent, Version, contact)
}
