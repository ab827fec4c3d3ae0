package weburl

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxHost is the maximum length in bytes of a host name that needs IDNA processing, because its cost grows faster than
// the length. DNS allows 253.
const maxHost = 1024

// profile is the standard's "domain to ASCII": UTS 46, non-transitional, with CheckJoiners and CheckBidi, without
// CheckHyphens, UseSTD3ASCIIRules and VerifyDnsLength.
var profile = idna.New(
	idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.ValidateLabels(true),
	idna.CheckHyphens(false), idna.CheckJoiners(true), idna.BidiRule(), idna.VerifyDNSLength(false),
)

// domainToASCII decodes percent-encoding and applies IDNA.
func domainToASCII(in []byte) (string, error) {
	raw := decode(in)
	if len(raw) > maxHost || !utf8.Valid(raw) {
		return "", ErrHost
	}
	name, err := toASCII(string(raw))
	if err != nil || name == "" {
		return "", ErrHost
	}
	for _, c := range []byte(name) {
		if sets[c]&forbiddenHost != 0 {
			return "", ErrHost
		}
	}
	return name, nil
}

// toASCII is the standard's domain to ASCII, except that an ASCII name is only lower-cased and its A-labels are not
// checked. The web has too many A-labels that no U-label is encoded as.
func toASCII(name string) (string, error) {
	ascii, hyphen, late := true, false, false
	for _, r := range name {
		ascii = ascii && r < utf8.RuneSelf
		hyphen = hyphen || r == '-' || r == '\ufe63' || r == '\uff0d'
		late = late || r >= firstLate
	}
	if ascii {
		return strings.ToLower(name), nil
	}
	if late {
		name = strings.Map(mapRecent, name)
	}
	if hyphen && hasBadALabel(name) {
		return "", ErrHost
	}
	return profile.ToASCII(name)
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// hasBadALabel reports whether a name has labels that the profile accepts as A-labels but that are invalid: "xn--"
// alone, or with non-ASCII characters. A letter in front of a label makes it plain text, so that its mapping is
// visible.
func hasBadALabel(name string) bool {
	for label := range strings.FieldsFuncSeq(name, isDot) {
		mapped, _ := profile.ToUnicode("a" + label) // the profile reports its own errors
		if strings.HasPrefix(mapped, "axn--") && (mapped == "axn--" || !isASCII(mapped)) {
			return true
		}
	}
	return false
}

func isDot(r rune) bool { return r == '.' || r == '\u3002' || r == '\uff0e' || r == '\uff61' }

// mapRecent maps the characters whose UTS 46 mapping changed after Unicode 15, which the profile's tables implement
// before Go 1.27. Characters allowed since then are not supported.
func mapRecent(r rune) rune {
	switch {
	case 0x10a0 <= r && r <= 0x10c5:
		return r - 0x10a0 + 0x2d00
	case 0x2135 <= r && r <= 0x2138: // the profile does not know that these are right-to-left
		return r - 0x2135 + 0x5d0
	case unicode.Is(ignoredLately, r):
		return -1
	}
	if to, ok := mappedLately[r]; ok {
		return to
	}
	return r
}

const firstLate = 0x4c0

var mappedLately = map[rune]rune{
	0x4c0: 0x4cf, 0x1e9e: 0xdf, 0x2132: 0x214e, 0x2183: 0x2184,
	0x2f868: 0x36fc, 0x2f874: 0x5f53, 0x2f91f: 0x243ab, 0x2f95f: 0x7aee, 0x2f9bf: 0x45d7,
}

var ignoredLately = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x115f, 0x1160, 1}, {0x17b4, 0x17b5, 1}, {0x180e, 0x180e, 1}, {0x2061, 0x2063, 1}, {0x206a, 0x206f, 1},
		{0x3164, 0x3164, 1}, {0xffa0, 0xffa0, 1},
	},
	R32: []unicode.Range32{{0x1d173, 0x1d17a, 1}},
}
