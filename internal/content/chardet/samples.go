package chardet

// A sample is a text in a language, written for this purpose: about daily things, so that its letters stand next to
// each other as they do elsewhere. The models are made of these texts when they are first needed.
type sample struct {
	lang  string
	group group
	text  string
}

// A group is a set of languages that share charsets.
type group uint8

const (
	western group = iota
	central
	baltic
	turkish
	southern // Esperanto and Maltese
	romanian
	celtic
	vietnamese
	cyrillic
	greek
	hebrew
	arabic
	thai
)

var samples = []sample{
	{"fr", western, "Le marché ouvre dès six heures du matin, même quand il gèle. Les maraîchers étalent leurs légumes, " +
		"le fromager goûte déjà ses spécialités et la fleuriste arrange près de l'église ses bouquets d'été. « Où " +
		"êtes-vous passé hier ? » demande une vieille dame à l'épicier. Il était malade, répond-il, mais ça va mieux grâce " +
		"à la médecine. Après la pluie, les élèves reviennent de l'école à côté du théâtre ; leur sœur aînée les a aidés à " +
		"préparer un gâteau aux œufs. C'est là qu'elle a reçu la nouvelle : son père, né en février, a été nommé président " +
		"de la société. Voilà, a-t-il décidé, il fallait fêter l'événement à la maison."},
	{"de", western, "Früh am Morgen öffnen die Händler ihre Stände auf dem großen Platz. Äpfel, Nüsse und frisches " +
		"Gemüse liegen für die Käufer bereit, während über der Straße noch Nebel hängt. Später kommen Schüler vorbei, die " +
		"müde zur Prüfung müssen. Die Bäckerin erzählt, daß ihr Geschäft natürlich schöner geworden sei; draußen könne man " +
		"jetzt sitzen und heiße Getränke genießen. Außerdem führt ein Weg zurück über die Brücke zum Schloß. Möchten Sie " +
		"mehr hören? Die Universität veröffentlichte gegenüber der Behörde eine Erklärung über mögliche Änderungen. " +
		"Übrigens läßt sich das Gerät während der Gewährleistung zurückgeben."},
	{"es", western, "El mercado abre muy temprano, cuando todavía hace frío. Los niños pasan corriendo hacia la escuela " +
		"y su abuela les dice adiós desde el balcón. ¿Qué pasó ayer? Según la policía, un camión chocó detrás de la " +
		"estación, pero nadie resultó herido. La señora Núñez compró jamón, melón y azúcar para la fiesta de mañana. " +
		"También habló el médico: está más tranquilo porque la situación mejoró. Después de la reunión, el año pasado, el " +
		"país aprobó una educación pública más sólida. ¡Qué alegría! Aquí, además, los jóvenes aún recuerdan la " +
		"canción que él tocó en español bajo los árboles del jardín."},
	{"pt", western, "O mercado abre cedo, quando ainda está frio. As crianças vão à escola e a avó diz até amanhã da " +
		"janela. Não há ninguém na estação, porque a ligação de comboio foi suspensa. Você já viu as maçãs e os pães? São " +
		"muito bons, disse o irmão. A população espera que o país resolva a questão da educação e da saúde pública. Também " +
		"é possível que a decisão só saia no próximo mês, depois das eleições. Além disso, três milhões de cidadãos têm " +
		"razão: o preço do açúcar e do café já não é razoável. As informações estão disponíveis em português, à disposição " +
		"de todos os usuários."},
	{"it", western, "Il mercato apre presto, perché la città è già sveglia. I venditori dicono che quest'anno la " +
		"qualità della frutta è più alta; però il prezzo, purtroppo, è salito. Lunedì e martedì c'è anche il pesce. Che " +
		"cosa farà il sindaco? Così non può andare avanti, ha detto un'anziana signora, ma nessuno lo sa. " +
		"L'università sarà chiusa fino a venerdì e l'attività riprenderà più tardi. Là, vicino al caffè, c'è un gatto che " +
		"dorme. La società ha già annunciato novità: la possibilità di pagare con carta è una comodità. Perciò chi verrà " +
		"potrà usarla."},
	{"nl", western, "De markt begint vroeg, als het nog donker is. Eén van de verkopers roept dat zijn appels de beste " +
		"zijn van heel België. De kinderen hebben hun knieën bezeerd en de zeeën waren ruw. Op het café om de hoek lezen " +
		"zij de krant; de financiële bijlage gaat over industriële coördinatie en geïnteresseerde beleggers. Hij is " +
		"geïrriteerd door de reünie van vóór de vakantie, maar zijn ideeën zijn creatief. Oekraïne en Italië vroegen " +
		"om een officiële reactie, terwijl de patiënten één voor één naar huis gingen."},
	{"ca", western, "El mercat obre molt d'hora, quan encara fa fred. Això és el que diu la gent: la ciutat és més " +
		"bonica al matí. Què va passar ahir? Segons la televisió, el camió no va poder girar perquè hi havia una llàmpada " +
		"al mig del carrer. També és cert que l'educació és gratuïta i que els nens aprenen el català i l'anglès. Però, a " +
		"més, la direcció de l'associació col·labora amb l'ajuntament. Després de la reunió, el president va dir que calia " +
		"una solució. Aquí viu la Núria, que té dinou anys i canta cançons."},
	{"da", western, "Markedet åbner tidligt, når det stadig er mørkt. Børnene går i skole og får frokost med på vejen. " +
		"På torvet sælger en ældre mand æbler, løg og frisk brød. Hvad skete der i går? Ifølge politiet kørte en bil ind i " +
		"et træ, men føreren blev ikke såret. Danmark er et lille land med mange øer og åbne marker. Også om søndagen er " +
		"der travlt ved havnen, hvor færgen lægger til. Bagefter spørger hun, om vi må låne hendes nøgle. Regeringen " +
		"foreslår større støtte til de små skoler, så børnene også kan lære sprog."},
	{"nb", western, "Markedet åpner tidlig, når det fortsatt er mørkt. Barna går på skolen og får matpakke med seg. På " +
		"torget selger en eldre mann epler, løk og ferskt brød. Hva skjedde i går? Ifølge politiet kjørte en bil på " +
		"et tre, men føreren ble ikke såret. Norge er et langt land med høye fjell og mange øyer. Også om søndagen er det " +
		"travelt ved brygga, der fergen legger til. Etterpå spør hun om vi må låne nøkkelen hennes. Været blir gråt, " +
		"så vær så snill å ta på deg støvler når du går ut på tur langs åsen."},
	{"sv", western, "Marknaden öppnar tidigt, när det ännu är mörkt. Barnen går till skolan och får smörgåsar med sig. " +
		"På torget säljer en äldre man äpplen, lök och färskt bröd. Vad hände i går? Enligt polisen körde en bil på ett " +
		"träd, men föraren blev inte skadad. Sverige är ett avlångt land med många sjöar och öar. Även på söndagar är det " +
		"bråttom vid hamnen, där färjan lägger till. Därefter frågar hon om vi får låna hennes nyckel. Regeringen föreslår " +
		"också större stöd åt små skolor, så att alla språk får sin plats på schemat."},
	{"fi", western, "Tori avataan aikaisin, kun on vielä pimeää. Lapset lähtevät kouluun ja saavat eväät mukaan. " +
		"Torilla myydään kalaa, leipää ja mansikoita. Mitä eilen tapahtui? Poliisin mukaan auto törmäsi puuhun, mutta " +
		"kuljettaja ei loukkaantunut. Äiti sanoi, että tänään on hyvä päivä lähteä metsään keräämään sieniä. Myös järvellä " +
		"näkyi veneitä, ja yöllä satoi vettä. Hän ei pidä siitä, että työ jää kesken, sillä kaikki täytyy tehdä tällä " +
		"viikolla. Tämä on tärkeää: älä unohda ääntää sanoja selvästi, kun äänestät."},
	{"is", western, "Markaðurinn opnar snemma, þegar enn er dimmt. Börnin fara í skólann og fá nesti með sér. Á torginu " +
		"selur gamall maður epli, lauk og nýtt brauð. Hvað gerðist í gær? Lögreglan segir að bíll hafi ekið á tré, en " +
		"ökumaðurinn meiddist ekki. Ísland er eyja í Atlantshafi þar sem veður er oft kalt. Það er líka gaman að fara út á " +
		"sjó og veiða fisk. Síðan spyr hún hvort við megum fá lykilinn lánaðan. Þau ætla að kaupa hús við fjörðinn, því að " +
		"þar er fallegt útsýni yfir fjöllin."},
	{"pl", central, "Targ otwiera się wcześnie, gdy jest jeszcze ciemno. Dzieci idą do szkoły i biorą ze sobą " +
		"śniadanie. Na rynku starszy mężczyzna sprzedaje jabłka, cebulę i świeży chleb. Co się wczoraj stało? Według " +
		"policji samochód uderzył w drzewo, ale kierowcy nic się nie stało. Również w niedzielę jest dużo ludzi, którzy " +
		"chcą kupić kwiaty. Później zapytała, czy możemy pożyczyć jej klucz. Rząd ogłosił, że będzie większa pomoc dla " +
		"małych szkół. Gdzie są źródła tej rzeki? Żółte liście leżą pod dębem, a słońce świeci nad łąką."},
	{"cs", central, "Trh se otvírá brzy, když je ještě tma. Děti jdou do školy a berou si s sebou svačinu. Na náměstí " +
		"prodává starší muž jablka, cibuli a čerstvý chléb. Co se včera stalo? Podle policie narazilo auto do stromu, ale " +
		"řidič nebyl zraněn. Také v neděli je tu dost lidí, kteří chtějí koupit květiny. Později se zeptala, jestli si " +
		"můžeme půjčit její klíč. Vláda oznámila, že bude větší pomoc pro malé školy. Příští rok už bude všechno jinak: " +
		"žluťoučký kůň běžel přes řeku a ďábelsky úpěl. Děkuji, řekl tiše otec."},
	{"sk", central, "Trh sa otvára skoro, keď je ešte tma. Deti idú do školy a berú si so sebou desiatu. Na námestí " +
		"predáva starší muž jablká, cibuľu a čerstvý chlieb. Čo sa včera stalo? Podľa polície auto narazilo do stromu, ale " +
		"vodič nebol zranený. Aj v nedeľu je tu veľa ľudí, ktorí chcú kúpiť kvety. Neskôr sa opýtala, či si môžeme požičať " +
		"jej kľúč. Vláda oznámila, že bude väčšia pomoc pre malé školy. Ďakujem, povedal ticho otec. Kôň beží cez lúku a " +
		"šťastný vŕta stĺp; ráno svieti slnko."},
	{"hu", central, "A piac korán nyit, amikor még sötét van. A gyerekek iskolába mennek, és uzsonnát visznek magukkal. " +
		"A téren egy idősebb férfi almát, hagymát és friss kenyeret árul. Mi történt tegnap? A rendőrség szerint egy autó " +
		"fának ütközött, de a vezető nem sérült meg. Vasárnap is sokan jönnek, akik virágot szeretnének venni. Később " +
		"megkérdezte, hogy kölcsönkérhetjük-e a kulcsát. A kormány bejelentette, hogy több támogatást kapnak a kis " +
		"iskolák. Különböző nyelvű könyvek között válogatott, ő pedig örült, hogy az erdőből hűvös szél fúj a folyó felől."},
	{"hr", central, "Tržnica se otvara rano, dok je još mrak. Djeca idu u školu i nose užinu. Na trgu stariji čovjek " +
		"prodaje jabuke, luk i svježi kruh. Što se dogodilo jučer? Policija kaže da je auto udario u drvo, ali vozač nije " +
		"ozlijeđen. I nedjeljom ima mnogo ljudi koji žele kupiti cvijeće. Poslije je pitala možemo li posuditi njezin " +
		"ključ. Vlada je najavila veću pomoć za male škole. Moći će se reći da je kuća među najljepšima, a noću se čuje " +
		"more. Također će doći i njegova žena."},
	{"sl", central, "Tržnica se odpre zgodaj, ko je še tema. Otroci gredo v šolo in vzamejo s seboj malico. Na trgu " +
		"starejši moški prodaja jabolka, čebulo in svež kruh. Kaj se je zgodilo včeraj? Po podatkih policije je avto trčil " +
		"v drevo, voznik pa ni bil poškodovan. Tudi v nedeljo pride veliko ljudi, ki želijo kupiti rože. Pozneje je " +
		"vprašala, če si lahko izposodimo njen ključ. Vlada je sporočila, da bo več pomoči za majhne šole. Človek še vedno " +
		"išče srečo, življenje pa teče naprej."},
	{"sq", western, "Tregu hapet herët, kur është ende errësirë. Fëmijët shkojnë në shkollë dhe marrin bukë me vete. Në " +
		"shesh një burrë i moshuar shet mollë, qepë dhe djathë. Çfarë ndodhi dje? Sipas policisë një makinë u përplas me " +
		"një pemë, por shoferi nuk u lëndua. Edhe të dielën ka shumë njerëz që duan të blejnë lule. Më vonë ajo pyeti nëse " +
		"mund të marrim çelësin e saj. Qeveria tha se do të ketë më shumë ndihmë për shkollat e vogla, që është çështje e " +
		"rëndësishme për të gjithë."},
	{"et", baltic, "Turg avatakse vara, kui on veel pime. Lapsed lähevad kooli ja võtavad söögi kaasa. Väljakul müüb " +
		"vanem mees õunu, sibulaid ja värsket leiba. Mis eile juhtus? Politsei sõnul sõitis auto vastu puud, kuid " +
		"juht viga ei saanud. Ka pühapäeval on palju inimesi, kes tahavad lilli osta. Pärast küsis ta, kas võime " +
		"tema võtit laenata. Valitsus teatas, et väikesed koolid saavad rohkem toetust. Öösel sadas vihma, nüüd on õhk " +
		"jälle värske. Žanr ja šokolaad on võõrsõnad, mida kõik mõistavad."},
	{"lv", baltic, "Tirgus atveras agri, kad vēl ir tumšs. Bērni iet uz skolu un ņem līdzi brokastis. Laukumā vecāks " +
		"vīrs pārdod ābolus, sīpolus un svaigu maizi. Kas notika vakar? Policija ziņo, ka automašīna ietriecās kokā, bet " +
		"vadītājs nav cietis. Arī svētdien ir daudz cilvēku, kas grib pirkt ziedus. Vēlāk viņa jautāja, vai mēs varam " +
		"aizņemties viņas atslēgu. Valdība paziņoja, ka mazajām skolām būs lielāks atbalsts. Rīgā šodien līst, tāpēc " +
		"ģimene paliek mājās pie ķiršu ievārījuma."},
	{"lt", baltic, "Turgus atidaromas anksti, kai dar tamsu. Vaikai eina į mokyklą ir pasiima priešpiečius. Aikštėje " +
		"vyresnis žmogus pardavinėja obuolius, svogūnus ir šviežią duoną. Kas atsitiko vakar? Policijos duomenimis, " +
		"automobilis atsitrenkė į medį, bet vairuotojas nenukentėjo. Ir sekmadienį čia daug žmonių, kurie nori pirkti " +
		"gėlių. Vėliau ji paklausė, ar galime pasiskolinti jos raktą. Vyriausybė pranešė, kad mažos mokyklos gaus daugiau " +
		"pagalbos. Lietuvių kalba yra viena seniausių, ją vartoja daugiau kaip trys milijonai žmonių, gyvenančių už jūros " +
		"ir čia."},
	{"tr", turkish, "Pazar sabah erkenden açılır, hava henüz karanlıktır. Çocuklar okula gider ve yanlarına kahvaltı " +
		"alırlar. Meydanda yaşlı bir adam elma, soğan ve taze ekmek satıyor. Dün ne oldu? Polise göre bir araba ağaca " +
		"çarptı, ama sürücü yaralanmadı. Pazar günleri de çiçek almak isteyen birçok insan vardır. Daha sonra anahtarını " +
		"ödünç alıp alamayacağımızı sordu. Hükümet, küçük okullara daha büyük destek verileceğini açıkladı. İstanbul'da " +
		"yağmur yağıyor; şimdi kışın soğuğu başladı, gökyüzü gri ve ışık azdır. Türkçe öğrenmek güzel bir şeydir, çünkü " +
		"dilin kuralları düzenlidir."},
	{"eo", southern, "La bazaro malfermiĝas frue, kiam estas ankoraŭ mallume. La infanoj iras al la lernejo kaj " +
		"kunprenas manĝaĵon. Sur la placo pli maljuna viro vendas pomojn, cepojn kaj freŝan panon. Kio okazis hieraŭ? Laŭ " +
		"la polico aŭto trafis arbon, sed la ŝoforo ne vundiĝis. Ankaŭ dimanĉe estas multaj homoj, kiuj volas aĉeti " +
		"florojn. Ŝi poste demandis, ĉu ni povas prunti ŝian ŝlosilon. La registaro anoncis, ke ĝi donos pli da helpo al " +
		"malgrandaj lernejoj. Ĉiu rajtas paroli; ĵaŭde la ĥoro kantos kaj ĉeestos ĉirkaŭ cent gastoj."},
	{"mt", southern, "Is-suq jiftaħ kmieni, meta għadu dalam. It-tfal imorru l-iskola u jieħdu l-ikel magħhom. " +
		"Fil-pjazza raġel xiħ ibigħ it-tuffieħ, il-basal u l-ħobż frisk. X'ġara lbieraħ? Il-pulizija qalet li karozza " +
		"ħabtet ma' siġra, imma s-sewwieq ma weġġax. Anke nhar ta' Ħadd hemm ħafna nies li jridu jixtru l-fjuri. Wara " +
		"staqsiet jekk nistgħux nissellfu ċ-ċavetta tagħha. Il-gvern ħabbar li se jkun hemm aktar għajnuna għall-iskejjel " +
		"żgħar, u ż-żgħażagħ ferħu bl-aħbar."},
	{"ro", romanian, "Piaţa se deschide devreme, când este încă întuneric. Copiii merg la şcoală şi îşi iau mâncare cu " +
		"ei. În piaţă un bărbat mai în vârstă vinde mere, ceapă şi pâine proaspătă. Ce s-a întâmplat ieri? Potrivit " +
		"poliţiei, o maşină a lovit un copac, dar şoferul nu a fost rănit. Şi duminica sunt mulţi oameni care vor să " +
		"cumpere flori. Mai târziu a întrebat dacă putem împrumuta cheia ei. Guvernul a anunţat că şcolile mici vor primi " +
		"mai mult ajutor. Însă nimeni nu ştie când; ţara aşteaptă o soluţie până la sfârşitul lunii."},
	{"ga", celtic, "Osclaíonn an margadh go luath, nuair atá sé fós dorcha. Téann na páistí ar scoil agus tugann siad " +
		"lón leo. Ar an gcearnóg díolann seanfhear úlla, oinniúin agus arán úr. Cad a tharla inné? De réir na ngardaí " +
		"bhuail carr in aghaidh crainn, ach níor gortaíodh an tiománaí. Bíonn a lán daoine ann Dé Domhnaigh freisin, ar " +
		"mian leo bláthanna a cheannach. Ina dhiaidh sin d'fhiafraigh sí an bhféadfaimis a heochair a fháil ar iasacht. " +
		"Dúirt an rialtas go mbeidh tuilleadh cabhrach ann do scoileanna beaga."},
	{"vi", vietnamese, "Chợ mở cửa từ sáng sớm, khi trời còn tối. Trẻ em đi học và mang theo đồ ăn trưa. Ở quảng " +
		"trường, một người đàn ông lớn tuổi bán táo, hành và bánh mì mới. Hôm qua đã xảy ra chuyện gì? Theo cảnh sát, một " +
		"chiếc xe đã đâm vào cây, nhưng người lái không bị thương. Chủ nhật cũng có nhiều người muốn mua hoa. Sau đó cô ấy " +
		"hỏi chúng tôi có thể mượn chìa khóa của cô được không. Chính phủ thông báo rằng các trường nhỏ sẽ được giúp đỡ " +
		"nhiều hơn. Việt Nam là một nước ở Đông Nam Á, có bờ biển dài và những dãy núi cao. Tiếng Việt là ngôn ngữ " +
		"có thanh điệu, được viết bằng chữ Quốc ngữ với các dấu phụ; nó đã thay đổi rất nhiều trong lịch sử."},
	{"ru", cyrillic, "Рынок открывается рано, когда ещё темно. Дети идут в школу и берут с собой завтрак. На площади " +
		"пожилой мужчина продаёт яблоки, лук и свежий хлеб. Что случилось вчера? По данным полиции, машина врезалась в " +
		"дерево, но водитель не пострадал. По воскресеньям здесь тоже много людей, которые хотят купить цветы. Потом она " +
		"спросила, можем ли мы взять у неё ключ. Правительство объявило, что маленькие школы получат больше помощи. " +
		"Это был самый обычный день: объяснить подъезд и съёмку нельзя, а чаще всего решение находят быстро. Кодировка " +
		"текста определяется по частоте букв, поэтому чем длиннее сообщение, тем надёжнее результат."},
	{"uk", cyrillic, "Ринок відкривається рано, коли ще темно. Діти йдуть до школи і беруть із собою сніданок. На площі " +
		"літній чоловік продає яблука, цибулю і свіжий хліб. Що сталося вчора? За даними поліції, машина врізалася в " +
		"дерево, але водій не постраждав. У неділю тут теж багато людей, які хочуть купити квіти. Потім вона запитала, чи " +
		"можемо ми позичити її ключ. Уряд оголосив, що маленькі школи отримають більше допомоги. Її сім'я живе в Україні; " +
		"їжа дуже смачна, а ґанок великий. Це є найкраще рішення, яке ми знайшли."},
	{"be", cyrillic, "Рынак адкрываецца рана, калі яшчэ цёмна. Дзеці ідуць у школу і бяруць з сабой сняданак. На плошчы " +
		"пажылы мужчына прадае яблыкі, цыбулю і свежы хлеб. Што здарылася ўчора? Паводле міліцыі, машына ўрэзалася ў " +
		"дрэва, але кіроўца не пацярпеў. У нядзелю тут таксама шмат людзей, якія хочуць купіць кветкі. Потым яна спытала, " +
		"ці можам мы пазычыць у яе ключ. Урад абвясціў, што малыя школы атрымаюць больш дапамогі. Гэта быў звычайны дзень, " +
		"і ўсё скончылася добра."},
	{"bg", cyrillic, "Пазарът отваря рано, когато още е тъмно. Децата отиват на училище и си вземат закуска. На площада " +
		"възрастен мъж продава ябълки, лук и пресен хляб. Какво се случи вчера? Според полицията кола се е блъснала в " +
		"дърво, но шофьорът не е пострадал. И в неделя тук има много хора, които искат да купят цветя. По-късно тя попита " +
		"дали можем да вземем назаем ключа ѝ. Правителството обяви, че малките училища ще получат повече помощ. Това беше " +
		"обикновен ден; навън валеше дъжд, а къщата беше тиха."},
	{"sr", cyrillic, "Пијаца се отвара рано, док је још мрак. Деца иду у школу и носе ужину. На тргу старији човек " +
		"продаје јабуке, лук и свеж хлеб. Шта се догодило јуче? Према полицији, ауто је ударио у дрво, али возач није " +
		"повређен. И недељом има много људи који желе да купе цвеће. Касније је питала да ли можемо да позајмимо њен кључ. " +
		"Влада је најавила да ће мале школе добити већу помоћ. Међу њима је и његова жена, која ће доћи џипом; ноћу " +
		"се чује жубор реке."},
	{"mk", cyrillic, "Пазарот се отвора рано, кога е уште темно. Децата одат на училиште и носат појадок. На плоштадот " +
		"постар човек продава јаболка, кромид и свеж леб. Што се случи вчера? Според полицијата, автомобил удрил во дрво, " +
		"но возачот не е повреден. И во недела има многу луѓе кои сакаат да купат цвеќе. Подоцна таа праша дали можеме да " +
		"го позајмиме нејзиниот клуч. Владата објави дека малите училишта ќе добијат поголема помош. Ѕвездите светат над " +
		"куќата."},
	{"el", greek, "Η αγορά ανοίγει νωρίς, όταν είναι ακόμη σκοτάδι. Τα παιδιά πηγαίνουν στο σχολείο και παίρνουν μαζί " +
		"τους πρωινό. Στην πλατεία ένας ηλικιωμένος άνδρας πουλάει μήλα, κρεμμύδια και φρέσκο ψωμί. Τι έγινε χθες; Σύμφωνα " +
		"με την αστυνομία, ένα αυτοκίνητο χτύπησε σε δέντρο, αλλά ο οδηγός δεν τραυματίστηκε. Και την Κυριακή έχει πολλούς " +
		"ανθρώπους που θέλουν να αγοράσουν λουλούδια. Αργότερα ρώτησε αν μπορούμε να δανειστούμε το κλειδί της. Η " +
		"κυβέρνηση ανακοίνωσε ότι τα μικρά σχολεία θα λάβουν περισσότερη βοήθεια. Άλλοι λένε ότι ξέρουν τη λύση, όμως η " +
		"ελληνική γλώσσα προϋποθέτει τόνους. Έτσι, ύστερα από ώρα, ήρθε η απάντηση που περίμεναν."},
	{"he", hebrew, "השוק נפתח מוקדם, כאשר עדיין חשוך. הילדים הולכים לבית הספר ולוקחים איתם ארוחה. בכיכר איש מבוגר מוכר " +
		"תפוחים, בצל ולחם טרי. מה קרה אתמול? לפי המשטרה מכונית פגעה בעץ, אבל הנהג לא נפצע. גם ביום ראשון יש הרבה אנשים " +
		"שרוצים לקנות פרחים. אחר כך היא שאלה אם אפשר לשאול ממנה את המפתח. הממשלה הודיעה כי בתי ספר קטנים יקבלו עזרה נוספת. " +
		"זה היה יום רגיל, והשפה העברית נכתבת מימין לשמאל. עוד נאמר שם כי ניתן להשתמש בסימנים שונים, ובין היתר במספרים " +
		"וסימני פיסוק של הטקסט."},
	{"ar", arabic, "يفتح السوق باكرا عندما يكون الظلام ما زال قائما. يذهب الأطفال إلى المدرسة ويأخذون معهم الطعام. في " +
		"الساحة رجل كبير السن يبيع التفاح والبصل والخبز الطازج. ماذا حدث أمس؟ وفقا للشرطة اصطدمت سيارة بشجرة، لكن " +
		"السائق لم يصب بأذى. وفي يوم الأحد أيضا يأتي كثير من الناس الذين يريدون شراء الزهور. ثم سألت إن كان يمكننا أن " +
		"نستعير مفتاحها. أعلنت الحكومة أن المدارس الصغيرة ستحصل على مساعدة أكبر. هذه هي اللغة العربية التي تكتب من اليمين " +
		"إلى اليسار، وقد ظهرت في عام مضى على صفحة من صفحات الشبكة. ولا شيء يضيء غير ضوء القمر في الليل."},
	{"fa", arabic, "بازار صبح زود باز می\u200cشود، وقتی هوا هنوز تاریک است. بچه\u200cها به مدرسه می\u200cروند و با خود " +
		"خوراکی می\u200cبرند. در میدان مردی پیر سیب، پیاز و نان تازه می\u200cفروشد. دیروز چه شد؟ به گفته پلیس یک ماشین به " +
		"درخت خورد، ولی راننده آسیب ندید. روزهای جمعه هم مردم زیادی می\u200cآیند که می\u200cخواهند گل بخرند. بعد پرسید آیا " +
		"می\u200cتوانیم کلید او را قرض بگیریم. دولت اعلام کرد که مدرسه\u200cهای کوچک کمک بیشتری خواهند گرفت. زبان فارسی در " +
		"ایران و چند کشور دیگر گفتگو می\u200cشود و پژوهش درباره آن گسترده است."},
	{"ur", arabic, "بازار صبح سویرے کھلتا ہے، جب ابھی اندھیرا ہوتا ہے۔ بچے سکول جاتے ہیں اور اپنے ساتھ کھانا لے جاتے " +
		"ہیں۔ چوک میں ایک بوڑھا آدمی سیب، پیاز اور تازہ روٹی بیچتا ہے۔ کل کیا ہوا؟ پولیس کے مطابق ایک گاڑی درخت سے ٹکرا " +
		"گئی، لیکن ڈرائیور زخمی نہیں ہوا۔ اتوار کو بھی بہت سے لوگ آتے ہیں جو پھول خریدنا چاہتے ہیں۔ بعد میں اس نے پوچھا کہ " +
		"کیا ہم اس کی چابی لے سکتے ہیں۔ حکومت نے اعلان کیا کہ چھوٹے سکولوں کو مزید مدد ملے گی۔ اردو پاکستان کی قومی " +
		"زبان ہے اور ٹی وی پر بھی بولی جاتی ہے۔"},
	{"th", thai, "ตลาดเปิดแต่เช้าเมื่อยังมืดอยู่ เด็กๆ ไปโรงเรียนและนำอาหารไปด้วย ที่ลานกว้างมีชายชราขายแอปเปิล หัวหอม " +
		"และขนมปังสด เมื่อวานเกิดอะไรขึ้น ตำรวจกล่าวว่ารถยนต์ชนต้นไม้ แต่คนขับไม่ได้รับบาดเจ็บ " +
		"วันอาทิตย์ก็มีคนมากมายที่ต้องการซื้อดอกไม้ หลังจากนั้นเธอถามว่าเราขอยืมกุญแจของเธอได้หรือไม่ " +
		"รัฐบาลประกาศว่าโรงเรียนขนาดเล็กจะได้รับความช่วยเหลือเพิ่มขึ้น ภาษาไทยเป็นภาษาที่มีวรรณยุกต์ และใช้อักษรของตนเอง " +
		"ประเทศไทยอยู่ในเอเชียตะวันออกเฉียงใต้ มีการกำหนดมาตรฐานการใช้คอมพิวเตอร์ทั่วไป ซึ่งทุกคนรู้จักกันดี"},
}
