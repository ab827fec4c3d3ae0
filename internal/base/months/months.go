// Package months parses the names of the months in some thirty languages.
package months

import "strings"

// names holds the names of the months and their short forms, January to December, with a line for each language. Names
// are genitives if the language uses them in dates, and have no full stops. A name that means different months in two
// languages is omitted from both.
const names = `
january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sep sept|october oct|november nov|december dec
januar jänner jan|februar feber|märz mrz mär|april|mai|juni|juli|august|september|oktober okt|november|dezember dez
janvier janv|février févr fév|mars|avril avr|mai|juin|juillet juil|août|septembre|octobre|novembre|décembre déc
enero ene|febrero|marzo|abril abr|mayo|junio|julio|agosto ago|septiembre setiembre|octubre|noviembre|diciembre dic
gennaio gen|febbraio|marzo|aprile|maggio mag|giugno giu|luglio lug|agosto|settembre set|ottobre ott|novembre|dicembre
janeiro|fevereiro fev|março|abril|maio|junho|julho|agosto|setembro|outubro out|novembro|dezembro
januari|februari|maart mrt|april|mei|juni|juli|augustus|september|oktober|november|december
januari|februari|mars|april|maj|juni|juli|augusti|september|oktober|november|december
januar|februar|marts|april|maj|juni|juli|august|september|oktober|november|desember des
tammikuuta|helmikuuta|maaliskuuta|huhtikuuta|toukokuuta|kesäkuuta|heinäkuuta|elokuuta|syyskuuta|lokakuuta|marraskuuta|joulukuuta
stycznia sty|lutego lut|marca|kwietnia kwi|maja|czerwca cze|lipca lip|sierpnia sie|września wrz|października paź|listopada|grudnia gru
ledna|února|března|dubna|května|června|července|srpna|září|října||prosince
januára|februára|marca|apríla|mája|júna|júla|augusta|septembra|októbra|novembra|decembra
január|február|március|április|május|június|július|augusztus|szeptember|október|november|december
ianuarie|februarie|martie|aprilie|mai|iunie|iulie|august|septembrie|octombrie|noiembrie|decembrie
ocak|şubat|mart|nisan|mayıs|haziran|temmuz|ağustos|eylül|ekim|kasım|aralık
января янв|февраля фев|марта мар|апреля апр|мая май|июня июн|июля июл|августа авг|сентября сен|октября окт|ноября ноя|декабря дек
січня|лютого|березня|квітня|травня|червня|липня|серпня|вересня|жовтня|листопада|грудня
януари|февруари|март|април|май|юни|юли|август|септември|октомври|ноември|декември
қаңтар|ақпан|наурыз|сәуір|мамыр|маусым|шілде|тамыз|қыркүйек|қазан|қараша|желтоқсан
ιανουαρίου|φεβρουαρίου|μαρτίου|απριλίου|μαΐου|ιουνίου|ιουλίου|αυγούστου|σεπτεμβρίου|οκτωβρίου|νοεμβρίου|δεκεμβρίου
januari|februari|maret|april|mei|juni|juli|agustus agu|september|oktober|november|desember
januari|februari|mac|april|mei|jun|julai|ogos|september|oktober|november|disember
जनवरी|फ़रवरी फरवरी|मार्च|अप्रैल|मई|जून|जुलाई|अगस्त|सितंबर|अक्टूबर अक्तूबर|नवंबर|दिसंबर
มกราคม|กุมภาพันธ์|มีนาคม|เมษายน|พฤษภาคม|มิถุนายน|กรกฎาคม|สิงหาคม|กันยายน|ตุลาคม|พฤศจิกายน|ธันวาคม
يناير|فبراير|مارس|أبريل|مايو|يونيو|يوليو|أغسطس|سبتمبر|أكتوبر|نوفمبر|ديسمبر
ינואר|פברואר|מרץ|אפריל|מאי|יוני|יולי|אוגוסט|ספטמבר|אוקטובר|נובמבר|דצמבר`

// Number returns the month, 1 to 12, for a lower-case name; 0 if the name is unknown.
func Number(name string) int { return numbers[name] }

var numbers = func() map[string]int {
	months := map[string]int{}
	for line := range strings.Lines(strings.TrimSpace(names)) {
		month := 0
		for words := range strings.SplitSeq(strings.TrimSpace(line), "|") {
			month++
			for name := range strings.FieldsSeq(words) {
				months[name] = month
			}
		}
	}
	return months
}()
