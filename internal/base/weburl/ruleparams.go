package weburl

import "strings"

// A paramKind is the type of a query parameter, derived from its name.
type paramKind uint8

const (
	ordinary paramKind = iota
	tracking
	session      // always a session id
	maybeSession // often a session id, but a conference has sessions, and a story has an id
	coldFusion   // one of the two parts of a session id: CFID or CFTOKEN
)

// paramKinds follows the documentation of the services that add the parameters, checked against the lists with which
// browsers remove them from links. Names that sites use for purposes of their own ("ref", "source", "cid", "pk_id") are
// not included.
var paramKinds = func() map[string]paramKind {
	kinds := map[string]paramKind{}
	add := func(kind paramKind, names string) {
		for _, name := range strings.Fields(names) {
			kinds[name] = kind
		}
	}
	add(tracking, "gclid gclsrc dclid gbraid wbraid gad_source gad_campaignid srsltid _ga _gl _gac") // Google
	add(tracking, "fbclid fb_action_ids fb_action_types fb_ref fb_source igsh igshid")               // Facebook, Instagram
	add(tracking, "yclid ymclid ysclid yadclid yadordid _openstat")                                  // Yandex
	// Bing and other networks
	add(tracking, "msclkid twclid ttclid li_fat_id epik sccid rdt_cid")
	add(tracking, "mc_cid mc_eid mkt_tok oly_anon_id oly_enc_id vero_id vero_conv __s _kx") // mail services
	add(tracking, "_hsenc _hsmi __hsfp __hssc __hstc hsctatracking")                        // HubSpot
	add(tracking, "wickedid _branch_match_id irclickid")
	// Matomo
	add(tracking, "pk_campaign pk_kwd pk_keyword pk_source pk_medium pk_content pk_cid piwik_campaign piwik_kwd "+
		"piwik_keyword")
	add(session, "jsessionid phpsessid asp.net_sessionid oscsid zenid xtcsid")
	add(maybeSession, "sid sessid sessionid session_id")
	add(coldFusion, "cfid cftoken")
	return kinds
}()

// trackingFamilies are prefixes of the parameters of Google Analytics (utm_source, utm_medium, ...), Matomo and
// HubSpot.
var trackingFamilies = [...]string{"utm_", "mtm_", "hsa_"}

// aspSession is the prefix of an ASP session id; eight letters follow, which differ between servers.
const aspSession = "aspsessionid"

// kindOf returns the kind of a parameter name, ignoring case.
func kindOf(name string) paramKind {
	var room [20]byte
	key := lower(name, &room)
	if kind, ok := paramKinds[string(key)]; ok {
		return kind
	}
	for _, family := range trackingFamilies {
		if strings.HasPrefix(string(key), family) {
			return tracking
		}
	}
	if len(name) == len(aspSession)+8 && string(key[:len(aspSession)]) == aspSession {
		return session
	}
	return ordinary
}

// lower writes the beginning of a word in lower case to room, which is longer than any word of the tables.
func lower[T string | []byte](word T, room *[20]byte) []byte {
	n := copy(room[:], word)
	for i, c := range room[:n] {
		if 'A' <= c && c <= 'Z' {
			room[i] = c | 0x20
		}
	}
	return room[:n]
}

// isSession reports whether a parameter is a complete session id.
func isSession(name, value string) bool {
	kind := kindOf(name)
	return kind == session || kind == maybeSession && looksRandom(value)
}

const (
	digits       = "0123456789"
	letters      = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	alphanumeric = digits + letters
)

// looksRandom reports whether a value looks like a generated id: at least 16 letters and digits, with some of both, and
// nothing else except the hyphens of a UUID.
func looksRandom(value string) bool {
	if len(value) == 36 && value[8] == '-' && value[13] == '-' && value[18] == '-' && value[23] == '-' {
		return hasOnly(value, alphanumeric+"-")
	}
	return len(value) >= 16 && hasOnly(value, alphanumeric) && strings.ContainsAny(value, digits) &&
		strings.ContainsAny(value, letters)
}

// hasOnly reports whether a value consists of the given characters.
func hasOnly(value, chars string) bool { return strings.Trim(value, chars) == "" }
