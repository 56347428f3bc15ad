// What the page can do besides being read: search, open what an address names, copy examples.
const form = document.querySelector('.search');
const input = document.querySelector('#search');
const operations = [...document.querySelectorAll('.operation')].map((element) => ({
  element,
  text: `${element.id} ${element.querySelector('summary').textContent} ${element.closest('section').querySelector('h2').textContent}`
    .toLowerCase()
    .replace(/\s+/g, ' '),
  link: document.querySelector(`nav [data-of="${element.id}"]`),
}));

function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const { element, text, link } of operations) {
    const matches = words.every((word) => text.includes(word));
    element.hidden = link.hidden = !matches;
    if (matches) found++;
  }
  for (const section of document.querySelectorAll('.chapter-body'))
    section.hidden = !section.querySelector('.operation:not([hidden])');
  for (const group of document.querySelectorAll('nav .group')) group.hidden = !group.querySelector('li:not([hidden])');
  document.querySelector('.intro').hidden = words.length > 0;
  document.querySelector('.schemas').hidden = words.length > 0;
  document.querySelector('.none').hidden = found > 0;
}

function openNamed() {
  const id = decodeURIComponent(location.hash.slice(1));
  const named = id && document.getElementById(id);
  if (!named) return;
  if (named.hidden || named.closest('[hidden]')) {
    input.value = '';
    search();
  }
  if (named.matches('details')) named.open = true;
  named.scrollIntoView();
}

form.hidden = false;
form.addEventListener('submit', (event) => event.preventDefault());
input.addEventListener('input', search);
document.addEventListener('keydown', (event) => {
  if (event.key === '/' && document.activeElement !== input) {
    event.preventDefault();
    input.focus();
  } else if (event.key === 'Escape' && document.activeElement === input) {
    input.value = '';
    search();
  }
});

if (navigator.clipboard) {
  for (const example of document.querySelectorAll('.example pre')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy';
    button.textContent = 'Copy';
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(example.querySelector('code').textContent);
      button.textContent = 'Copied';
      setTimeout(() => (button.textContent = 'Copy'), 1500);
    });
    example.append(button);
  }
}

// On a narrow screen the list of operations would stand before everything else.
if (matchMedia('(max-width: 64rem)').matches) document.querySelector('nav details').open = false;
addEventListener('hashchange', openNamed);
document.querySelector('nav').addEventListener('click', (event) => {
  // The same address again changes nothing by itself.
  if (event.target.closest('a')?.hash === location.hash) openNamed();
});
openNamed();
