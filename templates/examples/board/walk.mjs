// Walks through the example as its users would: BSVC_URL, PUBLISHABLE_KEY and SECRET_KEY say where. Needs nothing else.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';

const { BSVC_URL, PUBLISHABLE_KEY, SECRET_KEY } = process.env;

/** Sends a request as somebody; `null` is not signed in, `server` has the secret key. */
async function call(who, method, path, body) {
  const isForm = body instanceof FormData;
  const headers = { 'x-api-key': who === 'server' ? SECRET_KEY : PUBLISHABLE_KEY };
  if (!isForm) headers['content-type'] = 'application/json';
  if (who?.token) headers.authorization = `Bearer ${who.token}`;
  const reply = await fetch(`${BSVC_URL}/api/${path}`, {
    method,
    headers,
    body: isForm ? body : body && JSON.stringify(body),
  });
  const answer = await reply.json();
  return reply.ok ? (answer.data ?? answer) : answer.code;
}

async function signUp(name, roles = []) {
  const body = { email: `${name}@example.test`, password: 'correct horse' };
  const answer = await call(null, 'POST', 'userAuth/signup', body);
  assert.ok(answer.user, `${body.email} could not sign up: ${answer}`);
  const { user, accessToken } = answer;
  if (roles.length > 0) await call('server', 'PUT', `userAuth/users/${user._id}/roles`, { roles });
  return { id: user._id, token: accessToken };
}

const list = async (who, path, field) => {
  const found = await call(who, 'GET', `data/${path}`);
  return typeof found === 'string' ? found : found.items.map((item) => item[field]).sort();
};

const [ada, ben, eve] = [await signUp('ada'), await signUp('ben', ['planner']), await signUp('eve')];

// Ada makes a board and becomes its first member, at once: there is no board without one. She invites Ben.
const board = randomBytes(12).toString('hex');
const made = await call(ada, 'POST', 'batch', {
  operations: [
    { op: 'insert', collection: 'boards', body: { _id: board, title: 'Garden' } },
    { op: 'insert', collection: 'members', body: { board, user: ada.id, role: 'owner' } },
  ],
});
assert.notEqual(typeof made, 'string', made);
const invitation = await call(ada, 'POST', 'data/members', { board, user: ben.id, role: 'editor' });
assert.equal(await call(eve, 'POST', 'data/members', { board, user: eve.id, role: 'owner' }), 'RULE_REFUSED');

// Both write cards; Eve sees none of it, and the notes of a card are its owner's.
const card = await call(ben, 'POST', 'data/cards', { board, title: 'Dig', notes: 'by Monday', estimate: 2 });
assert.deepEqual(await list(ada, `cards?board=${board}`, 'title'), ['Dig']);
assert.deepEqual(await list(eve, `cards?board=${board}`, 'title'), []);
assert.equal((await call(ada, 'GET', `data/cards/${card._id}`)).notes, undefined);
assert.equal(await call(ada, 'PATCH', `data/cards/${card._id}`, { estimate: 5 }), 'FIELD_PROTECTED');
assert.equal((await call(ben, 'PATCH', `data/cards/${card._id}`, { $inc: { estimate: 3 } })).estimate, 5);

// Only what the schema allows is stored, however it comes in.
const newId = () => randomBytes(12).toString('hex');
assert.equal(await call(ada, 'PATCH', `data/members/${invitation._id}`, { role: 'boss' }), 'VALIDATION_FAILED');
assert.equal(await call(ada, 'POST', 'data/members', { board, user: ben.id, role: 'viewer' }), 'DUPLICATE_VALUE');
assert.equal(await call(ben, 'POST', 'data/cards', { board, title: 'Lost', column: newId() }), 'REFERENCE_MISSING');

// Columns with a card in the first, a move with a new order, a comment with its count: each is whole or not at all.
const [todo, done] = [newId(), newId()];
const batch = (who, ...operations) => call(who, 'POST', 'batch', { operations });
const insert = (collection, body) => ({ op: 'insert', collection, body });
const update = (collection, id, body) => ({ op: 'update', collection, id, body });
await batch(
  ada,
  insert('columns', { _id: todo, board, name: 'To do', position: 1 }),
  insert('columns', { _id: done, board, name: 'Done', position: 2 }),
  update('cards', card._id, { column: todo, position: 1 }),
);
const sow = newId();
await batch(
  ben,
  insert('cards', { _id: sow, board, title: 'Sow', column: todo, position: 2 }),
  update('cards', card._id, { column: done }),
  update('cards', sow, { position: 1 }),
);
assert.deepEqual(await list(ada, `cards?column=${todo}&position=1`, 'title'), ['Sow']);
const comment = (who) =>
  batch(who, insert('comments', { board, card: sow, text: 'When?' }), update('cards', sow, { $inc: { comments: 1 } }));
await Promise.all([comment(ada), comment(ben), comment(ada), comment(ben)]);
assert.equal(await comment(eve), 'RULE_REFUSED');
assert.equal((await call(ada, 'GET', `data/cards/${sow}`)).comments, 4);
assert.equal((await list(ben, `comments?card=${sow}`, 'text')).length, 4);

// A picture is the card's: its members get links to it, nobody else does.
const form = new FormData();
form.set('attach', JSON.stringify({ collection: 'cards', id: sow }));
form.set('file', new File(['a picture'], 'garden.png', { type: 'image/png' }));
const { path: picture, url: none } = await call(ben, 'POST', 'storage/upload', form);
assert.equal(none, null);
await call(ben, 'PATCH', `data/cards/${sow}`, { picture });
const { url } = await call(ada, 'GET', `storage/files/${picture}/link`);
assert.equal(await (await fetch(new URL(url, BSVC_URL))).text(), 'a picture');
assert.equal(await call(eve, 'GET', `storage/files/${picture}/link`), 'FILE_NOT_FOUND');
assert.equal((await fetch(`${BSVC_URL}/files/${picture}`)).status, 404);

// Without the membership the board is gone for Ben, at once.
await call(ada, 'DELETE', `data/members/${invitation._id}`);
assert.deepEqual(await list(ben, 'cards', 'title'), []);
assert.equal(await call(ben, 'PATCH', `data/cards/${card._id}`, { title: 'Mine' }), 'DOCUMENT_NOT_FOUND');

// What is in the trash has no links any more.
await call(ada, 'DELETE', `data/cards/${sow}`);
assert.equal(await call(ada, 'GET', `storage/files/${picture}/link`), 'FILE_NOT_FOUND');

console.log('walked');
