// Walks through the example as its users would: BSVC_URL and PUBLISHABLE_KEY say where. Needs nothing else.
import assert from 'node:assert/strict';

const { BSVC_URL, PUBLISHABLE_KEY } = process.env;

/** Sends a request as somebody; `null` is not signed in. */
async function call(who, method, path, body, more) {
  const headers = { 'content-type': 'application/json', 'x-api-key': PUBLISHABLE_KEY, ...more };
  if (who?.token) headers.authorization = `Bearer ${who.token}`;
  const reply = await fetch(`${BSVC_URL}/api/${path}`, { method, headers, body: body && JSON.stringify(body) });
  const answer = await reply.json();
  return reply.ok ? (answer.data ?? answer) : answer.code;
}

async function signUp(name) {
  const body = { email: `${name}@example.test`, password: 'correct horse' };
  const answer = await call(null, 'POST', 'userAuth/signup', body);
  assert.ok(answer.user, `${body.email} could not sign up: ${answer}`);
  const { user, accessToken } = answer;
  return { id: user._id, token: accessToken };
}

const list = async (who, path, field) => {
  const found = await call(who, 'GET', `data/${path}`);
  return typeof found === 'string' ? found : found.items.map((item) => item[field]).sort();
};

const [ann, bob] = [await signUp('ann'), await signUp('bob')];

// What two devices have written offline arrives as batches, each under a key: sent again, it is carried out once.
const nest = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const written = {
  operations: [
    { op: 'insert', collection: 'notes', body: { _id: nest, text: 'Nest', place: [13.4, 52.5] } },
    { op: 'insert', collection: 'notes', body: { text: 'Spring', place: [13.5, 52.6], shared: true } },
  ],
};
for (let sent = 0; sent < 2; sent++) {
  const answer = await call(ann, 'POST', 'batch', written, { 'idempotency-key': 'phone-1-batch-1' });
  assert.equal(answer.results?.length, 2, answer);
}
assert.deepEqual(await list(ann, 'notes', 'text'), ['Nest', 'Spring']);
assert.deepEqual(await list(bob, 'notes', 'text'), ['Spring']);
assert.deepEqual(await list(ann, 'notes?place_near=13.4,52.5,1000', 'text'), ['Nest']);

// Of a note that was changed elsewhere an old version is not overwritten.
const { updatedAt } = await call(ann, 'GET', `data/notes/${nest}`);
await call(ann, 'PATCH', `data/notes/${nest}`, { shared: true });
const late = await call(ann, 'PATCH', `data/notes/${nest}`, { text: 'Empty' }, { 'if-match': `"${updatedAt}"` });
assert.equal(late, 'CHANGED_MEANWHILE');
assert.deepEqual(await list(bob, 'notes', 'text'), ['Nest', 'Spring']);

console.log('walked');
