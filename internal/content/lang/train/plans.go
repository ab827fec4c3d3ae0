package main

import (
	"slices"
	"strings"

	"kumo/internal/content/lang/ngram"
)

// A plan configures the classifier of a script.
type plan struct {
	script ngram.Script
	shape  ngram.Shape
	known  []string // languages of the named classes
	// other has the unnamed classes: related languages, separated by spaces. All remaining languages form one more
	// class. A linear model has one plane per class, so a single class of all others would be on all sides of the known
	// languages.
	other       []string
	otherShare  float64 // sampling rate of the others relative to the known languages
	penalty     float32 // subtracted from the scores of the others, because unfamiliar texts tend to look foreign
	finer       bool    // distinguishes the known languages only after another plan's classifier has found one of them
	sampleShare float64 // number of training texts, relative to the largest classifier
}

var plans = []plan{
	{
		script: ngram.Latn,
		shape:  ngram.Shape{Min: 1, Max: 3, Words: true, Bits: 17},
		known:  []string{"en", "de", "fr", "es", "pt", "it", "id", "ms", "vi", "fil"},
		other: []string{
			"nl af fy nds li zea vls lb gsw bar ksh stq pfl hrx frr yi",
			"da nb nn no sv is fo jut",
			"cy ga gd br gv kw sco ang",
			"ca oc ast an gl ext mwl lad cbk-zam pap",
			"ro rm fur lld lmo vec nap scn sc co pms lij egl frp roa-tara wa pcd ht gcr gcf",
			"la eo io ia ie lfn vo avk isv tok nov",
			"pl szl csb hsb dsb cs sk lt lv sgs prg",
			"sl hr bs sr sh cnr sq aln be uk",
			"hu fi et vep fit vro se smn sms krl",
			"tr az tk uz crh kaa tt kk gag ku kmr diq kiu",
			"jv su ban min ace bug mad bjn bew gor nia map-bms iba sli mg btm",
			"ceb ilo hil pag war bcl bik pam mi haw sm to ty fj ch cps tet mh",
			"sw zu xh st tn ts ss nr nso ve sn lg rw ny ln rn ki kg tum bem loz",
		},
		otherShare:  0.6,
		penalty:     1.5,
		sampleShare: 1,
	},
	{
		script: ngram.Latn,
		shape:  ngram.Shape{Min: 1, Max: 0, Words: true, Bits: 18},
		known:  []string{"id", "ms"},
		finer:  true,
	},
	{
		script: ngram.Cyrl,
		shape:  ngram.Shape{Min: 1, Max: 3, Words: true, Bits: 15},
		known:  []string{"ru", "mn", "kk", "ky", "tg"},
		other: []string{
			"uk rue", "be be-tarask", "bg mk", "sr cu isv rsk", "tt ba crh uz kum krc nog az tk", "cv", "alt tyv kjh sah kaa",
			"bxr xal",
			"ab ady av ce inh kbd lez lbe os",
		},
		otherShare:  0.9,
		sampleShare: 0.5,
	},
	{
		script: ngram.Arab,
		shape:  ngram.Shape{Min: 1, Max: 3, Words: true, Bits: 15},
		known:  []string{"ar", "fa", "ur", "ps"},
		other: []string{"ckb ku ku-iq sdh lki luz", "ug kk ky tt", "azb", "mzn glk lrc bqi bgn bcc bal", "pnb skr khw ks",
			"sd"},
		otherShare:  0.4,
		penalty:     1,
		sampleShare: 0.4,
	},
	{
		script:      ngram.Deva,
		shape:       ngram.Shape{Min: 1, Max: 3, Words: true, Bits: 15},
		known:       []string{"hi", "ne"},
		other:       []string{"mr", "kok gom", "sa", "mai bho awa anp hne mag bgc raj"},
		otherShare:  0.4,
		penalty:     1.5,
		sampleShare: 0.3,
	},
	{
		script:      ngram.Hani,
		shape:       ngram.Shape{Min: 1, Max: 2, Bits: 16},
		known:       []string{"zh-Hans", "zh-Hant", "ja"},
		sampleShare: 0.3,
	},
	{script: ngram.Mymr, shape: ngram.Shape{Min: 1, Max: 3, Bits: 12}, known: []string{"my"}, otherShare: 0.5, penalty: 1,
		sampleShare: 0.1},
	{script: ngram.Tibt, shape: ngram.Shape{Min: 1, Max: 3, Words: true, Bits: 13}, known: []string{"bo"}, otherShare: 0.3,
		penalty: 4, sampleShare: 0.1},
}

// other is the name of the unnamed classes.
const other = "other"

// classes returns the names of the plan's classes.
func (p plan) classes() []string {
	if p.hasNoOther() {
		return slices.Clone(p.known)
	}
	return slices.Concat(p.known, slices.Repeat([]string{other}, len(p.other)+1))
}

// class returns the index of a language's class; -1 if the plan has none for it.
func (p plan) class(lang string) int {
	if i := slices.Index(p.known, lang); i >= 0 {
		return i
	}
	if p.hasNoOther() {
		return -1
	}
	for i, langs := range p.other {
		if slices.Contains(strings.Fields(langs), lang) {
			return len(p.known) + i
		}
	}
	return len(p.known) + len(p.other)
}

// hasNoOther reports whether there is no class for other languages. All text in Han is treated as Chinese or Japanese.
func (p plan) hasNoOther() bool { return p.finer || p.script == ngram.Hani }
