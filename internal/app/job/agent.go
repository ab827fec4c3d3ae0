package job

import (
	"fmt"

	"kumo/internal/base/settings"
)

// Version is kumo's version.
const Version = settings.Version

// Agent is the product token that robots.txt files know kumo by.
const Agent = "kumo"

// UserAgent is the default User-Agent.
func UserAgent(contact string) string {
	if contact == "" {
		return fmt.Sprintf("Mozilla/5.0 (compatible; %s/%s)", Agent, Version)
	}
	return fmt.Sprintf("Mozilla/5.0 (compatible; %s/%s; +%s)", Agent, Version, contact)
}
