package job

import (
	"testing"

	"kumo/internal/base/weburl"
)

func TestNameOf(t *testing.T) {
	for url, want := range map[string]string{"http://example.com/x": "example.com",
		"http://example.com:8080/": "example.com-8080",
		"http://127.0.0.1:80/":     "127.0.0.1", "http://[::1]:8080/": "ipv6-0-1-8080", "http://[::1]/": "ipv6-0-1",
		"http://[::]/": "ipv6-0", "http://[2001:DB8::a:1]/": "ipv6-2001-db8-0-a-1",
		"http://[2001:db8:1:2:3:4:5:6]:81/": "ipv6-2001-db8-1-2-3-4-5-6-81", "http://[fe80::]/": "ipv6-fe80-0"} {
		u, err := weburl.Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		if got := NameOf(u); got != want {
			t.Errorf("the name of %s is %q, not %q", url, got, want)
		}
	}
}
