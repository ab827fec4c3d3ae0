package weburl

import "testing"

// TestStandardNow tests the current standard, component by component. An empty want is a failure.
func TestStandardNow(t *testing.T) {
	for _, c := range []struct{ ref, base, want string }{
		// whitespace and line breaks
		{"\x00\x1f http://h/ \x00", "", "http://h/"}, {"ht\ntp\t:/\r/h\n/a\tb", "", "http://h/ab"},
		{"http://h/\u00a0 ", "", "http://h/%C2%A0"}, {"\ufeffhttp://h/", "", ""}, {"http://h:8\t0/", "", "http://h/"},
		// schemes and slashes
		{"HTTPS:h", "", "https://h/"}, {"https:/h", "", "https://h/"}, {"https:///h", "", "https://h/"},
		{"ftp:\\\\h\\a\\b", "", "ftp://h/a/b"}, {"http:h/x", "https://b/", "http://h/x"},
		{"http:a/../b", "http://b/c/d", "http://b/c/b"}, {"https:", "https://b/c?d#e", "https://b/c?d"}, {"http://", "", ""},
		{"http:///?", "", ""}, {"//h", "ftp://b/", "ftp://h/"}, {"/\\h", "http://b/", "http://h/"},
		// credentials
		{"http://u:p@h/", "", "http://u:p@h/"}, {"http://:@h/", "", "http://h/"}, {"http://@h/", "", "http://h/"},
		{"http://u:@h/", "", "http://u@h/"}, {"http://:p@h/", "", "http://:p@h/"}, {"http://a@b@h/", "", "http://a%40b@h/"},
		{"http://a:b:c@h/", "", "http://a:b%3Ac@h/"}, {"http://%75;=|^`{}'@h/", "", "http://%75%3B%3D%7C%5E%60%7B%7D'@h/"},
		{"http://u@/", "", ""}, {"http://u@:80/", "", ""}, {"http://u\\@h/", "", "http://u/@h/"},
		// ports
		{"http://h:/", "", "http://h/"}, {"http://h:0080/", "", "http://h/"}, {"https://h:80/", "", "https://h:80/"},
		{"ftp://h:21/", "", "ftp://h/"}, {"ftp://h:80", "", "ftp://h:80/"}, {"http://h:65535/", "", "http://h:65535/"},
		{"http://h:65536/", "", ""}, {"http://h:-1/", "", ""}, {"http://h:8a/", "", ""}, {"http://h: 80/", "", ""},
		{"http://h:٨/", "", ""}, {"http://h:80:80/", "", ""}, {"http://h:0/", "", "http://h:0/"},
		// names
		{"http://A.ExAmPlE./", "", "http://a.example./"}, {"http://a_b.-c-.*/", "", "http://a_b.-c-.*/"},
		{"http://!$&'()*+,;=_`{}~\"/", "", "http://!$&'()*+,;=_`{}~\"/"}, {"http://a..b/", "", "http://a..b/"},
		{"http://../", "", "http://../"}, {"http://a%41%2e%62/", "", "http://aa.b/"}, {"http://a%00b/", "", ""},
		{"http://a%25b/", "", ""}, {"http://a%zz/", "", ""}, {"http://a b/", "", ""}, {"http://a^b/", "", ""},
		{"http://a|b/", "", ""}, {"http://a<b/", "", ""}, {"http://a\x7fb/", "", ""}, {"http://%/", "", ""},
		{"http://a%40b/", "", ""}, {"http://a%2Fb/", "", ""}, {"http://a%5Bb/", "", ""}, {"http://a]/", "", ""},
		{"http://ab--c.d--/", "", "http://ab--c.d--/"},
		// IDNA
		{"http://BÜCHER.example/", "", "http://xn--bcher-kva.example/"}, {"http://faß.de/", "", "http://xn--fa-hia.de/"},
		{"http://FAẞ.de/", "", "http://xn--fa-hia.de/"}, {"http://ς.gr/", "", "http://xn--3xa.gr/"},
		{"http://日本。ｊｐ/", "", "http://xn--wgv71a.jp/"}, {"http://a\u00adb\u200b\u2060/", "", "http://ab/"},
		{"http://\u00ad/", "", ""}, {"http://☃.net/", "", "http://xn--n3h.net/"}, {"http://a≠b/", "", "http://xn--ab-miv/"},
		{"http://℀/", "", ""}, {"http://a\u0301.x/", "", "http://xn--1ca.x/"}, {"http://\u0301.x/", "", ""},
		{"http://xn--a/", "", "http://xn--a/"}, {"http://XN--/", "", "http://xn--/"},
		{"http://xn--zca.xn--a-yoc/", "", "http://xn--zca.xn--a-yoc/"}, {"http://xn--a.ß/", "", ""},
		{"http://xn--.ß/", "", ""},
		{"http://xn--ß/", "", ""}, {"http://ｘn--bcher-kva/", "", "http://xn--bcher-kva/"}, {"http://ｘn--é/", "", ""},
		{"http://\u200d.x/", "", ""}, {"http://क्\u200dष/", "", "http://xn--11b2ezcw70k/"},
		{"http://א1.x/", "", "http://xn--1-zhc.x/"}, {"http://1א.x/", "", ""}, {"http://אa.x/", "", ""},
		{"http://1.א/", "", ""}, {"http://aℵ/", "", ""}, {"http://\ufffd/", "", ""}, {"http://％41.x/", "", ""},
		{"http://a．％30/", "", ""}, {"http://Ⴀ.ge/", "", "http://xn--rkj.ge/"}, {"http://a\u180eb/", "", "http://ab/"},
		// IPv4
		{"http://127.1/", "", "http://127.0.0.1/"}, {"http://0x7f.1/", "", "http://127.0.0.1/"},
		{"http://017700000001/", "", "http://127.0.0.1/"}, {"http://4294967295/", "", "http://255.255.255.255/"},
		{"http://4294967296/", "", ""}, {"http://1.2.3.4./", "", "http://1.2.3.4/"},
		{"http://1.2.3.4../", "", "http://1.2.3.4../"}, {"http://1.2.3.256/", "", ""}, {"http://256.2.3.4/", "", ""},
		{"http://1.2.65535/", "", "http://1.2.255.255/"}, {"http://1.2.65536/", "", ""}, {"http://1.2.3.4.5/", "", ""},
		{"http://0x/", "", "http://0.0.0.0/"}, {"http://0x.0/", "", "http://0.0.0.0/"},
		{"http://0X.0x0.00/", "", "http://0.0.0.0/"}, {"http://1.2.3.08/", "", ""}, {"http://a.09/", "", ""},
		{"http://a.0x/", "", ""}, {"http://a.0xg/", "", "http://a.0xg/"}, {"http://1.2.3.a/", "", "http://1.2.3.a/"},
		{"http://1..2/", "", ""}, {"http://.1/", "", ""}, {"http://1e3/", "", "http://1e3/"},
		{"http://１。２。３。４/", "", "http://1.2.3.4/"}, {"http://%31%2e2/", "", "http://1.0.0.2/"},
		{"http://0xfffffffff/", "", ""},
		{"http://09.a/", "", "http://09.a/"},
		// IPv6
		{"http://[::]/", "", "http://[::]/"}, {"http://[1:0:0:2:0:0:0:3]/", "", "http://[1:0:0:2::3]/"},
		{"http://[1:0:0:2:0:0:3:4]/", "", "http://[1::2:0:0:3:4]/"},
		{"http://[0:1:0:1:0:1:0:1]/", "", "http://[0:1:0:1:0:1:0:1]/"},
		{"http://[1::2:3:4:5:6:7]/", "", "http://[1:0:2:3:4:5:6:7]/"},
		{"http://[::FFFF:1.2.3.4]/", "", "http://[::ffff:102:304]/"}, {"http://[::1.2.3.4]/", "", "http://[::102:304]/"},
		{"http://[1:2:3:4:5:6:1.2.3.4]/", "", "http://[1:2:3:4:5:6:102:304]/"}, {"http://[1:2:3:4:5:6:7:1.2.3.4]/", "", ""},
		{"http://[::1.2.3]/", "", ""}, {"http://[::01.2.3.4]/", "", ""}, {"http://[::1.2.3.4.]/", "", ""},
		{"http://[0001::00a]/", "", "http://[1::a]/"}, {"http://[00001::]/", "", ""}, {"http://[1:::2]/", "", ""},
		{"http://[::1::]/", "", ""}, {"http://[1:2:3:4:5:6:7]/", "", ""}, {"http://[1:2:3:4:5:6:7:8:9]/", "", ""},
		{"http://[1:2:3:4:5:6:7::]/", "", "http://[1:2:3:4:5:6:7:0]/"}, {"http://[fe80::1%25en0]/", "", ""},
		{"http://[::1]x/", "", ""}, {"http://[::1/", "", ""}, {"http://[]/", "", ""}, {"http://[www]/", "", ""},
		{"http://[%3a:1]/", "", ""},
		// paths
		{"http://h/a//b/", "", "http://h/a//b/"}, {"http://h/a/./b/../c", "", "http://h/a/c"},
		{"http://h/../../a", "", "http://h/a"}, {"http://h/a/%2e/b/%2E%2e/c", "", "http://h/a/c"},
		{"http://h/a/.%2e", "", "http://h/"}, {"http://h/...", "", "http://h/..."},
		{"http://h/a/..;x", "", "http://h/a/..;x"},
		{"http://h//..//a", "", "http://h//a"}, {"http://h/a\\b\\..\\c", "", "http://h/a/c"},
		{"http://h/ \"<>`{}^?", "", "http://h/%20%22%3C%3E%60%7B%7D%5E?"},
		{"http://h/'|[]~!$&()*+,;=:@%", "", "http://h/'|[]~!$&()*+,;=:@%"},
		{"http://h/é💩\x7f\x01", "", "http://h/%C3%A9%F0%9F%92%A9%7F"}, {"http://h/%zz%e9%", "", "http://h/%zz%e9%"},
		{"http://h/C:/../a", "", "http://h/a"}, {"..", "http://h/a/b/c", "http://h/a/"}, {"../", "http://h/a", "http://h/"},
		{"./..", "http://h/a//b", "http://h/a/"}, {"x:1", "http://h/", "x:1"}, {"./x:1", "http://h/", "http://h/x:1"},
		// queries and fragments
		{"http://h?q", "", "http://h/?q"}, {"http://h#f", "", "http://h/#f"}, {"http://h/?", "", "http://h/?"},
		{"http://h/#", "", "http://h/#"}, {"http://h/?a b'\"<>`{}|^\\[]", "", "http://h/?a%20b%27%22%3C%3E`{}|^\\[]"},
		{"http://h/#a b'\"<>`{}|^\\[]", "", "http://h/#a%20b'%22%3C%3E%60{}|^\\[]"},
		{"http://h/?a?b#c#d?", "", "http://h/?a?b#c#d?"}, {"http://h/?é\x01%zz", "", "http://h/?%C3%A9%01%zz"},
		{"?", "http://h/a?b#c", "http://h/a?"}, {"#", "http://h/a?b#c", "http://h/a?b#"},
		{"", "http://h/a?b#c", "http://h/a?b"}, {"?a/../b", "http://h/x/y", "http://h/x/y?a/../b"},
		{"a?/..#/..", "http://h/x/y", "http://h/x/a?/..#/.."},
	} {
		base := URL{}
		if c.base != "" {
			base = parse(t, c.base)
		}
		u, err := base.Resolve(c.ref)
		if u.String() != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q on %q = %q, %v, want %q", c.ref, c.base, u, err, c.want)
		}
		if err == nil {
			checkParsed(t, u)
		}
	}
}
