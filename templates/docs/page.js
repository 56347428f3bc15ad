// What the pages can do besides being read: search, copy examples; in the reference open what an address names, and send
// requests.
const form = document.querySelector('.search');
// The path before /api, where a proxy puts one.
const base = new URL(document.currentScript.src).pathname.replace(/\/api\/docs\/page\.js$/, '');
openSearch();
offerCopies();
// On a narrow screen the list at the side would stand before everything else.
if (matchMedia('(max-width: 64rem)').matches) document.querySelector('nav details').open = false;

/** In the reference the operations that have all words stay; what the guides say of them is listed above, in all pages. */
function openSearch() {
  const input = document.querySelector('#search');
  const found = document.querySelector('.found');
  const operations = [...document.querySelectorAll('nav [data-of]')].map((item) => {
    const { of: id } = item.dataset;
    const link = item.querySelector('a');
    const chapter = item.closest('.group').querySelector('.chapter').textContent;
    const text = `${id} ${link.title} ${link.textContent} ${chapter}`.toLowerCase();
    // Of the other page there is the link alone.
    return { item, link, text, element: document.getElementById(id) };
  });

  async function search() {
    const text = input.value;
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const elsewhere = [];
    let shown = 0;
    for (const { item, link, text, element } of operations) {
      const matches = words.every((word) => text.includes(word));
      item.hidden = !matches;
      if (element) element.hidden = !matches;
      if (!matches) continue;
      shown++;
      if (!element && words.length > 0) elsewhere.push(presentOperation(link));
    }
    for (const section of document.querySelectorAll('.chapter-body'))
      section.hidden = !section.querySelector('.operation:not([hidden])');
    for (const group of document.querySelectorAll('nav .group'))
      group.hidden = !group.querySelector('li:not([hidden])');
    for (const rest of document.querySelectorAll('.intro, .schemas, article, nav .guides, nav .shared, nav .page-name'))
      rest.hidden = words.length > 0;
    const sections = words.length > 0 ? await loadSections().catch(() => []) : [];
    // Another letter was typed before the guides were there.
    if (input.value !== text) return;
    const matching = findSections(sections, words);
    const shownSections = matching.map(({ section }) => presentSection(section, words));
    // A guide about just that comes before operations.
    shownSections.splice(matching.filter(({ weight }) => weight >= SUBJECT).length, 0, ...elsewhere);
    found.replaceChildren(...shownSections);
    found.hidden = found.children.length === 0;
    document.querySelector('.none').hidden = words.length === 0 || shown + matching.length > 0;
  }

  function endSearch() {
    input.value = '';
    search();
  }

  function openNamed() {
    const id = decodeURIComponent(location.hash.slice(1));
    const named = id && document.getElementById(id);
    if (!named) {
      // An operation of the other page, as older links have it.
      const other = operations.find(({ item }) => item.dataset.of === id);
      if (other) location.replace(other.link.href);
      return;
    }
    if (named.hidden || named.closest('[hidden]')) endSearch();
    if (named.matches('details')) named.open = true;
    named.scrollIntoView();
  }

  form.hidden = false;
  form.addEventListener('submit', (event) => event.preventDefault());
  input.addEventListener('input', search);
  document.addEventListener('keydown', (event) => {
    if (event.key === '/' && !document.activeElement.matches('input, textarea')) {
      event.preventDefault();
      input.focus();
    } else if (event.key === 'Escape' && document.activeElement === input) endSearch();
  });
  addEventListener('hashchange', openNamed);
  for (const place of [found, document.querySelector('nav')])
    place.addEventListener('click', (event) => {
      const link = event.target.closest('a');
      if (!link || link.pathname !== location.pathname) return;
      // The same address again changes nothing by itself.
      if (link.hash === location.hash) openNamed();
      else if (!link.hash) endSearch();
    });
  for (const place of document.querySelectorAll('.try')) offerTry(place);
  openNamed();
}

let loadingSections;
function loadSections() {
  return (loadingSections ??= fetch(`${base}/api/docs/guides.json`).then((response) => response.json()));
}

const MOST_SECTIONS = 12;
const MOST_COUNTED = 5;

/** Words of a question that say nothing of its subject. */
const EMPTY_WORDS = new Set(
  'a an and are at be by can do does for how i in is it my of on or show the this to with'.split(' '),
);
const SUBJECT = 1000;

/**
 * Sections by how well they fit: first the guide whose subject is called so, then those with the words in their heading,
 * then those that use them often. Of three words one may be missing.
 */
function findSections(sections, words) {
  const query = words.join(' ');
  const meant = words.filter((word) => !EMPTY_WORDS.has(word));
  const wanted = meant.length > 0 ? meant : words;
  const weigh = ({ guide, heading, text, words: subjects = [] }) => {
    const head = `${guide} ${heading}`.toLowerCase();
    const called = subjects.join(', ');
    const all = `${head} ${text.toLowerCase()}`;
    const has = (word) => all.includes(word) || called.includes(word);
    if (wanted.filter((word) => !has(word)).length > Math.floor(wanted.length / 3)) return 0;
    const often = wanted.reduce((sum, word) => sum + Math.min(MOST_COUNTED, all.split(word).length - 1), 0);
    const inHead = wanted.filter((word) => head.includes(word)).length;
    const inSubjects = wanted.filter((word) => subjects.some((subject) => subject.split(/[ -]/).includes(word))).length;
    const names = subjects.length > 0 ? [...subjects, ...guide.toLowerCase().split(/[^\w.-]+/)] : [];
    const isSubject = names.includes(query) || names.includes(wanted.join(' '));
    return 1 + (isSubject ? SUBJECT : 0) + wanted.length * MOST_COUNTED * (inHead + 2 * inSubjects) + often;
  };
  return sections
    .map((section) => ({ section, weight: weigh(section) }))
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, MOST_SECTIONS);
}

/** An operation of the other page, with the name of its chapter. */
function presentOperation(listed) {
  const link = Object.assign(document.createElement('a'), { href: listed.href });
  const title = document.createElement('strong');
  title.append(...[...listed.childNodes].map((node) => node.cloneNode(true)));
  const chapter = listed.closest('.group').querySelector('.chapter').textContent;
  link.append(title, Object.assign(document.createElement('small'), { textContent: chapter }));
  return link;
}

function presentSection({ address, guide, heading, text }, words) {
  const link = Object.assign(document.createElement('a'), { href: `${base}/api/docs/guides/${address}` });
  const title = Object.assign(document.createElement('strong'), { textContent: heading });
  const from = Object.assign(document.createElement('small'), { textContent: guide });
  const places = words.map((word) => text.toLowerCase().indexOf(word)).filter((at) => at >= 0);
  const begin = places.length > 0 ? text.lastIndexOf(' ', Math.max(0, Math.min(...places) - 40)) + 1 : 0;
  const excerpt = document.createElement('p');
  excerpt.append(begin > 0 ? '… ' : '', ...markWords(text.slice(begin, begin + 180), words), ' …');
  link.append(title, ...(guide === heading ? [] : [from]), excerpt);
  return link;
}

/** The text with the words in it marked. */
function markWords(text, words) {
  const pattern = new RegExp(`(${words.map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')).join('|')})`, 'gi');
  return text.split(pattern).map((part, at) => {
    if (at % 2 === 0) return part;
    return Object.assign(document.createElement('mark'), { textContent: part });
  });
}

function offerCopies() {
  if (!navigator.clipboard) return;
  for (const example of document.querySelectorAll('.example pre')) {
    const button = makeButton('Copy', async () => {
      await navigator.clipboard.writeText(example.querySelector('code').textContent);
      button.textContent = 'Copied';
      setTimeout(() => (button.textContent = 'Copy'), 1500);
    });
    button.className = 'copy';
    example.append(button);
  }
}

/** A button that opens a form for the operation. Nothing that is typed is kept beyond the page. */
function offerTry(place) {
  const opener = makeButton('Try it', async () => {
    opener.disabled = true;
    const { paths } = await loadDocument();
    opener.remove();
    place.append(makeForm(place.dataset, paths[place.dataset.path][place.dataset.method]));
  });
  place.append(opener);
}

let loading;
function loadDocument() {
  return (loading ??= fetch(`${base}/api/openapi.json`).then((response) => response.json()));
}

/** Credentials by header: typed once, they stand in every form. */
const CREDENTIALS = {
  publishableKey: ['x-api-key', 'API key'],
  secretKey: ['x-api-key', 'API key'],
  userToken: ['authorization', 'Access token of a user'],
  operatorToken: ['authorization', 'Token of an operator'],
  adminToken: ['authorization', 'Admin token'],
};

function makeForm({ path, method }, operation) {
  const fields = document.createElement('form');
  const content = operation.requestBody?.content ?? {};
  const example = content['application/json']?.example;
  const schemes = new Set(operation.security.flatMap((each) => Object.keys(each)));
  const headers = new Map([...schemes].flatMap((name) => (CREDENTIALS[name] ? [CREDENTIALS[name]] : [])));
  for (const [header, label] of headers) addField(fields, header, label, { type: 'password', className: header });
  for (const { name, in: kind, schema } of operation.parameters)
    if (kind === 'path') addField(fields, `path:${name}`, name, { value: schema.examples?.[0] ?? '', required: true });
  if (operation.parameters.some((each) => each.in === 'query'))
    addField(fields, 'query', 'Query', { placeholder: 'status=open&sort=-createdAt' });
  const isJson = 'application/json' in content;
  if (isJson) {
    const text = document.createElement('textarea');
    addField(fields, 'body', 'Body (JSON)', { value: example ? JSON.stringify(example, null, 2) : '', rows: 6 }, text);
  } else if ('multipart/form-data' in content) addField(fields, 'file', 'File', { type: 'file' });
  const send = makeButton('Send');
  send.type = 'submit';
  const answer = Object.assign(document.createElement('pre'), { className: 'answer', hidden: true });
  answer.setAttribute('role', 'status');
  fields.append(send, answer);
  fields.addEventListener('input', ({ target }) => {
    // The same credential in all forms.
    if (target.className)
      for (const each of document.getElementsByClassName(target.className)) each.value = target.value;
  });
  for (const { name, className } of fields.elements)
    if (className) fields.elements[name].value = document.getElementsByClassName(className)[0]?.value ?? '';
  fields.addEventListener('submit', async (event) => {
    event.preventDefault();
    send.disabled = true;
    answer.hidden = false;
    answer.textContent = '…';
    answer.textContent = await sendRequest(path, method, fields.elements, isJson).catch(String);
    send.disabled = false;
  });
  return fields;
}

async function sendRequest(path, method, fields, isJson) {
  const headers = {};
  if (fields['x-api-key']?.value) headers['x-api-key'] = fields['x-api-key'].value.trim();
  const token = fields.authorization?.value.trim().replace(/^Bearer /i, '');
  if (token) headers.authorization = `Bearer ${token}`;
  let body;
  if (isJson && fields.body.value.trim()) {
    headers['content-type'] = 'application/json';
    body = fields.body.value;
  } else if (fields.file) {
    body = new FormData();
    if (fields.file.files[0]) body.append('file', fields.file.files[0]);
  }
  const filled = path.replace(/\{(\w+)\}/g, (_all, name) => encodeURIComponent(fields[`path:${name}`].value));
  const query = fields.query?.value.trim().replace(/^\?/, '');
  const begun = performance.now();
  const response = await fetch(base + (query ? `${filled}?${query}` : filled), {
    method: method.toUpperCase(),
    headers,
    body,
  });
  const text = await response.text();
  const took = Math.round(performance.now() - begun);
  let shown = text;
  if (response.headers.get('content-type')?.includes('json')) shown = JSON.stringify(JSON.parse(text), null, 2);
  return `${response.status} ${response.statusText} · ${took} ms\n${shown}`;
}

function addField(fields, name, label, properties, input = document.createElement('input')) {
  const line = document.createElement('label');
  Object.assign(input, { autocomplete: 'off', spellcheck: false, name, ...properties });
  line.append(label, input);
  fields.append(line);
}

function makeButton(text, act) {
  const button = Object.assign(document.createElement('button'), { type: 'button', textContent: text });
  if (act) button.addEventListener('click', act);
  return button;
}
