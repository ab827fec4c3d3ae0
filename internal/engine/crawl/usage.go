package crawl

import "kumo/internal/base/page"

// usageWords returns the words by which a page's statements are counted: "train_ai=n license".
func usageWords(u *page.Usage) string {
	if u == nil {
		return ""
	}
	words := u.Uses.String()
	if u.License != "" {
		words += " license"
	}
	return words
}
