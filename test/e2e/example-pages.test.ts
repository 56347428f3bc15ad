import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHROMIUM, drivePage, type DrivenPage } from '../helpers/chromium.js';
import { listen, type Listening } from '../helpers/listen.js';
import { runOrThrow, startService, type RunningService } from '../helpers/run-binary.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

// Each example is a page that runs: opened in a browser as it is, but for the server's address and the key.
const EXAMPLES = join(import.meta.dirname, '../../templates/examples');
const NAMES = readdirSync(EXAMPLES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

let dir: TempDir;
let service: RunningService;
let site: Listening;
const keys = new Map<string, { publishable: string; secret: string }>();
/** Of the page that is open; what it says is true of a document stored past the rules. */
let page: DrivenPage;

beforeAll(async () => {
  if (!CHROMIUM) return;
  dir = await openTempDir();
  const env = { BSVC_DATA_DIR: join(dir.path, 'data'), BSVC_DURABILITY: 'relaxed', BSVC_BCRYPT_COST: '4' };
  for (const name of NAMES) {
    const applied = await runOrThrow(['apply', '-f', join(EXAMPLES, name, 'bsvc.yaml'), '--json'], env);
    const { changes } = JSON.parse(applied) as { changes: { keys?: { publishable: string; secret: string } }[] };
    keys.set(name, changes.find((change) => change.keys)!.keys!);
  }
  service = await startService(['serve', '--host', '127.0.0.1', '--port', '0'], env);
  const server = createServer(({ url }, response) => {
    const name = NAMES.find((each) => url === `/${each}`);
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(
      name &&
        readFileSync(join(EXAMPLES, name, 'index.html'), 'utf8')
          .replaceAll('http://localhost:4000', service.ready.url)
          .replace('pk_live_…', keys.get(name)!.publishable),
    );
  });
  site = await listen(server);
});
afterAll(async () => {
  await site?.close();
  await service?.stop();
  await dir?.remove();
});

/** Fills in the fields of a form and presses its first button, or the one of that value. */
const submit = (form: string, fields: Record<string, string>, value = ''): Promise<void> =>
  page.evaluate(`(() => {
    const form = document.querySelector(${JSON.stringify(form)});
    for (const [name, value] of Object.entries(${JSON.stringify(fields)})) form.elements[name].value = value;
    form.querySelector(${JSON.stringify(value === '' ? 'button' : `button[value=${value}]`)}).click();
  })()`);
const shows = (list: string, text: string): Promise<void> =>
  page.until(`document.querySelector(${JSON.stringify(list)}).textContent.includes(${JSON.stringify(text)})`);
const hides = (list: string, text: string): Promise<void> =>
  page.until(`!document.querySelector(${JSON.stringify(list)}).textContent.includes(${JSON.stringify(text)})`);
const press = (label: string): Promise<void> =>
  page.evaluate(`[...document.querySelectorAll('li button')].find((each) => each.textContent === '${label}').click()`);

/** Chooses a picture in a form, and presses its last button. */
const submitPicture = (form: string, field: string): Promise<void> =>
  page.evaluate(`(() => {
    const files = new DataTransfer();
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>';
    files.items.add(new File([svg], 'beach.svg', { type: 'image/svg+xml' }));
    const form = document.querySelector('${form}');
    form.elements.${field}.files = files.files;
    [...form.querySelectorAll('button')].at(-1).click();
  })()`);

async function signUp(name: string): Promise<void> {
  await submit('#account', { email: `${name}@example.com`, password: 'correct horse' }, 'signUp');
  await page.until(`!document.querySelector('#leave').hidden`);
}

async function signOut(): Promise<void> {
  await page.evaluate(`document.querySelector('#leave').click()`);
  await page.until(`document.querySelector('#leave').hidden`);
}

/** As the project's own server. */
async function ask<T>(example: string, method: string, path: string, body?: unknown): Promise<T> {
  const reply = await fetch(`${service.ready.url}/api/${path}`, {
    method,
    headers: { 'x-api-key': keys.get(example)!.secret, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  expect(reply.ok).toBe(true);
  return (await reply.json()) as T;
}

const userId = (): Promise<string> =>
  page.evaluate<string>(`JSON.parse(localStorage.getItem(localStorage.key(0))).user._id`);

/** What the users of each example do in its page. */
const DEEDS: Record<string, () => Promise<void>> = {
  async board() {
    const ada = { email: 'ada@example.com', password: 'correct horse', name: 'Ada' };
    await submit('#account', ada, 'signUp');
    await page.until(`!document.querySelector('#leave').hidden`);
    await submit('#board', { title: 'Garden' });
    await shows('#boards', 'Garden');
    await shows('#members', 'Ada (owner)');
    await ask('board', 'PATCH', `userAuth/users/${await userId()}`, { name: 'Ada L.' });
    await shows('#members', 'Ada L. (owner)');
    await submit('#card', { title: 'Dig' });
    await shows('#cards', 'Dig');
    await page.until(`document.querySelector('#queue').textContent === ''`);
    // Without a network a card is shown at once, and waits.
    await page.evaluate(`globalThis.network = fetch; globalThis.fetch = () => Promise.reject(new TypeError('none'))`);
    await submit('#card', { title: 'Sow' });
    await shows('#cards', 'Sow');
    await shows('#queue', '1 not sent yet');
    await page.evaluate(`globalThis.fetch = globalThis.network`);
    await page.until(`document.querySelector('#queue').textContent === ''`);
    expect((await ask<{ data: { count: number } }>('board', 'GET', 'data/cards?count=true')).data.count).toBe(2);
    await signOut();
    await signUp('eve');
    await hides('#cards', 'Dig');
  },
  async shop() {
    await ask('shop', 'POST', 'data/products', { name: 'Tea', price: 4 });
    await shows('#products', 'Tea');
    await signUp('cleo');
    await shows('#products', 'Order');
    await press('Order');
    await shows('#orders', '1 × placed');
    await press('Cancel');
    await hides('#orders', 'placed');
  },
  async forum() {
    await signUp('amy');
    await submit('#topic', { title: 'Hello', text: '<b>Hi</b>' });
    await shows('#posts', '<b>Hi</b>');
    await signOut();
    await shows('#topics', 'Hello');
  },
  async crm() {
    await signUp('olga');
    await submit('#firm', { name: 'Oak' });
    await shows('#firms', 'Oak');
    await submit('#contact', { name: 'Otto', phone: '1' });
    await shows('#contacts', 'Otto 1');
    await signOut();
    await signUp('paul');
    await submit('#firm', { name: 'Pine' });
    await shows('#firms', 'Pine');
    await hides('#firms', 'Oak');
    await hides('#contacts', 'Otto');
  },
  async album() {
    await signUp('mum');
    await submit('#album', { title: 'Summer' });
    await shows('#albums', 'Summer');
    await submitPicture('#photo', 'file');
    await page.until(`document.querySelector('#photos img')?.src.startsWith('http')`);
    expect(await page.evaluate(`fetch(document.querySelector('#photos img').src).then(({ status }) => status)`)).toBe(
      200,
    );
  },
  async fieldnotes() {
    await signUp('fay');
    await page.until(`document.querySelector('#waiting').textContent === ''`);
    await page.setOffline(true);
    await page.evaluate(`{
      const { text, place } = document.querySelector('#note').elements;
      [text.value, place.value] = ['Nest', '13.4,52.5'];
    }`);
    await submitPicture('#note', 'photo');
    await shows('#notes', 'Nest (13.4, 52.5)');
    await page.until(`document.querySelector('#notes img').src.startsWith('blob:')`);
    await shows('#waiting', '1 to send');
    await page.setOffline(false);
    await page.until(`document.querySelector('#notes img')?.src.startsWith('http')`);
    await hides('#waiting', 'to send');
    const status = `fetch(document.querySelector('#notes img').src).then(({ status }) => status)`;
    expect(await page.evaluate(status)).toBe(200);
    await signOut();
    await hides('#notes', 'Nest');
  },
  async booking() {
    await signUp('hair');
    await ask('booking', 'PUT', `userAuth/users/${await userId()}/roles`, { roles: ['staff'] });
    await submit('#lay', { day: '2027-01-04', time: '10:15' });
    await page.until(`document.querySelector('#message').textContent.includes('time')`);
    await submit('#lay', { day: '2027-01-04', time: '10:00' });
    await shows('#slots', '10:00 free');
    await signOut();
    await signUp('kim');
    await shows('#slots', 'Book');
    await press('Book');
    await shows('#slots', '10:00 asked');
    await signOut();
    await hides('#slots', '10:00');
    await signUp('lee');
    await hides('#slots', '10:00');
    await signOut();
    await submit('#account', { email: 'kim@example.com', password: 'correct horse' }, 'signIn');
    await shows('#slots', 'Cancel');
    await press('Cancel');
    await shows('#slots', '10:00 free');
  },
};

describe.runIf(CHROMIUM)('the page of the example', () => {
  it.each(NAMES)('%s does what its users want', async (name) => {
    page = await drivePage(`${site.url}/${name}`);
    try {
      await page.until(`document.readyState === 'complete' && document.querySelector('#account')?.onsubmit`);
      await DEEDS[name]!();
    } finally {
      await page.close();
    }
  });
});
