// Defines step, in a world of its own: the page's scripts see neither it nor its state.
globalThis.step = (() => {
	const maxLinks = 10000, maxURL = 4096, maxClicks = 20, maxDetails = 1000;
	const known = new Set(), clicked = new WeakSet();
	let found = [], clicks = 0;

	const add = a => {
		const url = a.href;
		if (typeof url !== 'string' || !/^https?:/.test(url) || url.length > maxURL || known.size >= maxLinks) return;
		if (!known.has(url)) { known.add(url); found.push(url); }
	};
	const scan = node => {
		if (node.nodeType !== Node.ELEMENT_NODE) return;
		if (node.matches('a[href], area[href]')) add(node);
		for (const a of node.querySelectorAll('a[href], area[href]')) add(a);
	};
	// Virtual lists remove elements that are no longer visible.
	new MutationObserver(all => {
		for (const m of all) {
			if (m.type === 'attributes') scan(m.target);
			for (const node of m.addedNodes) scan(node);
		}
	}).observe(document, {childList: true, subtree: true, attributes: true, attributeFilter: ['href']});

	const visible = e => e.getClientRects().length > 0 && getComputedStyle(e).visibility === 'visible';

	// The page, or the largest element that scrolls if the page does not.
	const scroller = () => {
		const page = document.scrollingElement || document.documentElement;
		if (page.scrollHeight > innerHeight + 1) return page;
		let best = page, size = innerWidth * innerHeight / 4;
		for (const e of [...document.querySelectorAll('main, section, div, ul, ol, table')].slice(0, 5000)) {
			if (e.scrollHeight <= e.clientHeight + 50 || e.clientWidth * e.clientHeight <= size) continue;
			if (/auto|scroll/.test(getComputedStyle(e).overflowY)) { best = e; size = e.clientWidth * e.clientHeight; }
		}
		return best;
	};

	// Words on buttons that add entries to the page.
	const more = new RegExp('^[+↓\\s]*(' + [
		'(load|show|view|see|display|get) (more|all|next|older)( .{1,25})?', 'more( (results|posts|articles|items|news|stories|comments))?',
		'mehr( .{1,15})? (laden|anzeigen|zeigen)', '(weitere|alle|ältere)( .{1,20})? (laden|anzeigen)', 'mehr( anzeigen)?', 'weitere .{1,20}',
		'(afficher|voir|charger) (plus|tout|la suite)( .{1,25})?', 'plus (de|d’|d\') ?.{1,20}',
		'(cargar|ver|mostrar) (más|todo)( .{1,25})?', '(carica|mostra|vedi) (altr[oiae]|di più|tutt[oiae])( .{1,25})?',
		'(carregar|ver|mostrar) (mais|tudo)( .{1,25})?', '(meer|alles) (laden|tonen|weergeven)', 'toon meer',
		'(pokaż|załaduj|zobacz) więcej( .{1,25})?', '(показать|загрузить) (ещё|еще|больше|все)( .{1,25})?', 'ещё|еще',
		'daha fazla( .{1,25})?', 'もっと(見る|読む)', '(加载|查看|显示)更多', '更多', '더 ?보기',
	].join('|') + ')[\\s.…↓»›+]*$', 'i');
	const isConsent = e => e.closest('[id*="cookie" i], [class*="cookie" i], [id*="consent" i], [class*="consent" i], ' +
		'[id*="gdpr" i], [class*="gdpr" i], [id*="onetrust" i], [id*="usercentrics" i], [id*="didomi" i], dialog');
	const stays = e => { // neither a link to another document, nor sends a form
		if (e.closest('form') && e.type !== 'button') return false;
		const a = e.closest('a[href]');
		return !a || /^(#|javascript:)/i.test(a.getAttribute('href').trim());
	};
	const clickMore = () => {
		if (clicks >= maxClicks) return false;
		for (const e of document.querySelectorAll('button, [role=button], input[type=button], a[href^="#"], a:not([href])')) {
			const text = (e.innerText || e.value || e.ariaLabel || '').trim();
			if (text.length > 60 || !more.test(text) || e.disabled || !visible(e) || !stays(e) || isConsent(e)) continue;
			if (clicked.has(e) && known.size === e.kumoKnown) continue; // the last click on it has brought nothing
			clicked.add(e);
			e.kumoKnown = known.size;
			clicks++;
			e.click();
			return true;
		}
		return false;
	};

	// step does one step of the actions. It returns the links that have appeared since the last one, and whether there was
	// something to do.
	return (actions, maxHeight) => {
		if (known.size === 0) scan(document.documentElement);
		let acted = false;
		if (actions.includes('details')) {
			for (const d of [...document.querySelectorAll('details:not([open])')].slice(0, maxDetails)) { d.open = true; acted = true; }
		}
		if (actions.includes('scroll')) {
			const s = scroller(), before = s.scrollTop;
			if (before < maxHeight) s.scrollTop = before + Math.max(s.clientHeight, 100) * 0.9;
			acted = acted || s.scrollTop > before;
		}
		if (!acted && actions.includes('more')) acted = clickMore();
		const links = found;
		found = [];
		return {links, acted};
	};
})();
