package sitepages

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"text/template"
	"time"
)

// A tongue has the fragments of sentences in a language: every subject fits every predicate and every tail.
type tongue struct {
	lang, space, stop                             string
	subjects, predicates, tails, labels, headings []string
	people                                        []string
}

func split(s string) []string { return strings.Split(strings.Join(strings.Fields(s), " "), " | ") }

var tongues = []tongue{{
	lang: "en", space: " ", stop: ".",
	subjects: split(`The harbor office | A retired carpenter | Our small team | The new bridge | Every second customer |
		The museum of clocks | A driver from the valley | The old bakery | Nobody in the village | The night train |
		One of the engineers | The library at the market | A group of students | The owner of the mill | The last report |
		The ferry to the islands | A simple rope | The second version | This small machine | The committee`),
	predicates: split(`keeps the accounts in a blue notebook | opens again after a long winter | costs less than most people
		expect | needs two hours and a lot of patience | was repaired with parts from an older model | explains the rules to
		anybody who asks | carries about forty people at once | has been measured again and again | works better when the
		weather is dry | stores a copy of everything | replaces the wooden stairs behind the house | found a mistake in the
		first table | runs without noise and without oil | sends a short message when the work is done | grew from three
		rooms to a whole floor | reads every letter twice | returns the same value for equal input | was built by hand in a
		cold workshop`),
	tails: split(`because the old plan failed | while the neighbors watch from the window | as long as the river is low |
		although two walls are still missing | before the first guests arrive | and nobody remembers why | until the end of
		the season | with help from the next town | whenever the lamp turns green | so that children can reach it | according
		to the drawings of that year | except on the first day of a month | if the pressure stays above the mark | and then
		waits for the next order | as the photographs of that summer show`),
	labels: split(`Home | News | Weather | Culture | Contact | About us | Shop | Help | Privacy | Terms | Archive | Topics |
		Sign in | Register | Search | Gardens | Travel | Imprint | Careers | Press`),
	headings: split(`How we moved the clock | The long road to the island | What the winter left behind | A second life for
		the mill | Seven ropes and a knot | Notes on a quiet harbor | Where the bread comes from | The bridge that nobody
		wanted | Working with cold metal | A guide to small machines | Questions about the pump | The price of a window`),
	people: split(`Ellen Marsh | Tom Hargrove | Ruth Calder | Ivor Penn | Clara Whitlow | Sam Okafor | Lena Dorset | Paul Ryle`),
}, {
	lang: "de", space: " ", stop: ".",
	subjects: split(`Das Hafenamt | Ein alter Tischler | Unsere kleine Gruppe | Die neue Brücke | Der Nachtzug | Die Bücherei
		am Markt | Der Besitzer der Mühle | Die zweite Fassung | Niemand im Dorf | Die Fähre zur Insel`),
	predicates: split(`führt die Bücher in einem blauen Heft | öffnet nach einem langen Winter wieder | kostet weniger als
		erwartet | braucht zwei Stunden und viel Geduld | trägt etwa vierzig Leute auf einmal | wurde mehrfach gemessen |
		findet einen Fehler in der ersten Tabelle | läuft ohne Lärm und ohne Öl`),
	tails: split(`bis zum Ende der Saison | trotz der fehlenden Wände | vor der Ankunft der ersten Gäste | mit Hilfe aus der
		nächsten Stadt | nach den Zeichnungen von damals | seit dem vergangenen Sommer | zur Freude der Nachbarn`),
	labels: split(`Startseite | Aktuelles | Wetter | Kultur | Kontakt | Über uns | Laden | Hilfe | Datenschutz | Impressum |
		Archiv | Themen | Anmelden | Suche`),
	headings: split(`Wie wir die Uhr versetzten | Der lange Weg zur Insel | Was der Winter übrig ließ | Ein zweites Leben für
		die Mühle | Sieben Seile und ein Knoten | Woher das Brot kommt`),
	people: split(`Jonas Behrend | Frieda Lohmann | Karl Ostermann | Greta Siebel`),
}, {
	lang: "ru", space: " ", stop: ".",
	subjects: split(`Управление порта | Старый плотник | Наша небольшая группа | Новый мост | Ночной поезд | Библиотека у
		рынка | Хозяин мельницы | Вторая версия | Паром на остров`),
	predicates: split(`снова работает после долгой зимы | стоит меньше, чем все ожидали | требует двух часов и терпения |
		перевозит около сорока человек | хранит копии всех бумаг | работает без шума и масла | находит ошибку в первой
		таблице`),
	tails: split(`до конца сезона | перед приездом первых гостей | с помощью соседнего города | по чертежам того года | с
		прошлого лета | к радости соседей`),
	labels: split(`Главная | Новости | Погода | Культура | Контакты | О нас | Магазин | Помощь | Архив | Темы | Войти |
		Поиск`),
	headings: split(`Как мы переставили часы | Долгая дорога на остров | Что оставила зима | Вторая жизнь мельницы | Семь
		верёвок и один узел`),
	people: split(`Анна Лескова | Пётр Громов | Ирина Белова`),
}, {
	lang: "zh", space: "", stop: "。",
	subjects:   split(`港口办公室 | 一位老木匠 | 我们的小组 | 新修的桥 | 夜间列车 | 市场旁的图书馆 | 磨坊的主人 | 第二个版本`),
	predicates: split(`在漫长的冬天之后重新开放 | 的费用比大家预想的低 | 需要两个小时和很多耐心 | 一次可以运送四十个人 | 把所有文件都保存了一份 | 在第一张表里发现了错误`),
	tails:      split(`，一直到这个季节结束 | ，邻居们都从窗口看着 | ，因为旧的计划失败了 | ，直到第一批客人到来 | ，正如那年夏天的照片所示`),
	labels:     split(`首页 | 新闻 | 天气 | 文化 | 联系 | 关于我们 | 商店 | 帮助 | 隐私 | 条款 | 归档 | 登录`),
	headings:   split(`我们如何移动了大钟 | 通往海岛的长路 | 冬天留下了什么 | 磨坊的第二次生命 | 七根绳子和一个结`),
	people:     split(`林晓雨 | 陈国栋 | 王思远`),
}}

// A writer writes the words of a page. All randomness comes from dice.
type writer struct {
	*tongue
	dice   *rand.Rand
	author string
	date   time.Time
}

func (w *writer) pick(from []string) string { return from[w.dice.IntN(len(from))] }

func (w *writer) between(least, most int) int { return least + w.dice.IntN(most-least+1) }

// headline returns a heading, half of the time with a part of a sentence.
func (w *writer) headline() string {
	h := w.pick(w.headings)
	if w.space != "" && w.dice.IntN(2) == 0 {
		h += ": " + w.pick(w.subjects)
	}
	return h
}

func (w *writer) sentence() string {
	s := w.pick(w.subjects) + w.space + w.pick(w.predicates)
	if w.dice.IntN(3) > 0 {
		s += w.space + w.pick(w.tails)
	}
	return s + w.stop
}

func (w *writer) sentences(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = w.sentence()
	}
	return strings.Join(all, w.space)
}

// marked returns sentences, sometimes with inline markup around a whole one.
func (w *writer) marked(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = w.sentence()
		switch w.dice.IntN(12) {
		case 0:
			all[i] = "<strong>" + all[i] + "</strong>"
		case 1:
			all[i] = `<a href="/topic/` + fmt.Sprint(w.dice.IntN(90)) + `">` + all[i] + "</a>"
		case 2:
			all[i] = "<em>" + all[i] + "</em>"
		}
	}
	return strings.Join(all, w.space)
}

// block returns a part of an article.
func (w *writer) block() string {
	var b strings.Builder
	switch w.dice.IntN(14) {
	case 0:
		b.WriteString("<ul>\n")
		for range w.between(3, 6) {
			b.WriteString("<li>" + w.marked(1) + "</li>\n")
		}
		b.WriteString("</ul>\n")
	case 1:
		b.WriteString("<ol>\n")
		for range w.between(3, 5) {
			b.WriteString("<li>" + w.pick(w.headings) + "</li>\n")
		}
		b.WriteString("</ol>\n")
	case 2:
		fmt.Fprintf(&b, "<blockquote><p>%s</p></blockquote>\n", w.sentences(1))
	case 3:
		b.WriteString("<table>\n<tr><th>" + w.pick(w.labels) + "</th><th>" + w.pick(w.labels) + "</th></tr>\n")
		for range w.between(3, 7) {
			fmt.Fprintf(&b, "<tr><td>%s</td><td>%d</td></tr>\n", w.pick(w.subjects), w.between(1, 900))
		}
		b.WriteString("</table>\n")
	case 4, 5:
		fmt.Fprintf(&b, "<h2>%s</h2>\n<p>%s</p>\n", w.headline(), w.marked(w.between(2, 4)))
	case 6:
		fmt.Fprintf(&b, "<figure><img src=\"/img/%d.jpg\" alt=\"\"><figcaption>%s</figcaption></figure>\n", w.between(1, 99),
			w.sentence())
	default:
		fmt.Fprintf(&b, "<p>%s</p>\n", w.marked(w.between(1, 6)))
	}
	return b.String()
}

// funcs are the functions of the templates.
func (w *writer) funcs() template.FuncMap {
	mark := func(r rune) func() string { return func() string { return string(r) } }
	links := func(n int, format string) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, format, fmt.Sprintf("/%d", w.dice.IntN(1000)), w.pick(w.labels))
		}
		return b.String()
	}
	return template.FuncMap{
		"m": mark(beginMain), "o": mark(beginOptional), "c": mark(beginComment), "e": mark(endMark),
		"lang": func() string { return w.lang }, "s": w.sentences, "p": w.marked, "h": w.headline,
		"label": func() string { return w.pick(w.labels) }, "name": func() string { return w.pick(w.people) },
		"thing":  func() string { return w.pick(w.subjects) },
		"n":      w.between,
		"times":  func(least, most int) []struct{} { return make([]struct{}, w.between(least, most)) },
		"chance": func(percent int) bool { return w.dice.IntN(100) < percent },
		"lis":    func(n int) string { return links(n, "<li><a href=\"%s\">%s</a></li>\n") },
		"as":     func(n int) string { return links(n, "<a href=\"%s\">%s</a>\n") },
		"titles": func(n int) string {
			var b strings.Builder
			for range n {
				fmt.Fprintf(&b, "<li><a href=\"/p/%d\">%s</a></li>\n", w.dice.IntN(1000), w.headline())
			}
			return b.String()
		},
		"toc": func(n int) string { // a table of contents
			var b strings.Builder
			for range n {
				fmt.Fprintf(&b, "<li><a href=\"#x%d\">%s</a></li>\n", w.dice.IntN(1000), w.headline())
			}
			return b.String()
		},
		"body": func(least, most int) string {
			out := "<p>" + w.marked(w.between(2, 4)) + "</p>\n"
			for range w.between(least, most) {
				out += w.block()
			}
			return out + "<p>" + w.marked(w.between(1, 4)) + "</p>\n"
		},
		"later": func(layout string) string { return w.date.AddDate(0, 0, w.between(1, 300)).Format(layout) },
		"price": func() string { return fmt.Sprintf("%d.%02d", w.between(3, 400), w.between(0, 99)) },
		"id":    func() string { return fmt.Sprintf("%06x", w.dice.IntN(1<<24)) },
	}
}
