// Walks through the example as its users would: BSVC_URL, PUBLISHABLE_KEY and SECRET_KEY say where. Needs nothing else.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';

const { BSVC_URL, PUBLISHABLE_KEY, SECRET_KEY } = process.env;

/** Sends a request as somebody; `null` is not signed in, `server` has the secret key. */
async function call(who, method, path, body) {
  const headers = { 'content-type': 'application/json', 'x-api-key': who === 'server' ? SECRET_KEY : PUBLISHABLE_KEY };
  if (who?.token) headers.authorization = `Bearer ${who.token}`;
  const reply = await fetch(`${BSVC_URL}/api/${path}`, { method, headers, body: body && JSON.stringify(body) });
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

const [olga, anna, paul] = [await signUp('olga'), await signUp('anna'), await signUp('paul')];

// Whoever founds a firm becomes its owner, at once: there is no firm without one. Owners say who works for them.
const found = async (name, owner) => {
  const firm = randomBytes(12).toString('hex');
  const made = await call(owner, 'POST', 'batch', {
    operations: [
      { op: 'insert', collection: 'firms', body: { _id: firm, name } },
      { op: 'insert', collection: 'staff', body: { firm, user: owner.id, role: 'owner' } },
    ],
  });
  assert.notEqual(typeof made, 'string', made);
  return firm;
};
const [oak, pine] = [await found('Oak', olga), await found('Pine', paul)];
assert.equal(await call(paul, 'POST', 'data/staff', { firm: oak, user: paul.id, role: 'owner' }), 'RULE_REFUSED');
await call(olga, 'POST', 'data/staff', { firm: oak, user: anna.id, role: 'agent' });

const otto = await call(anna, 'POST', 'data/contacts', { firm: oak, name: 'Otto', remark: 'call late' });
await call(paul, 'POST', 'data/contacts', { firm: pine, name: 'Pia' });
assert.deepEqual(await list(olga, 'contacts', 'name'), ['Otto']);
assert.deepEqual(await list(paul, 'contacts', 'name'), ['Pia']);
assert.deepEqual(await list(olga, 'contacts', 'remark'), [undefined]);
assert.equal(await call(paul, 'PATCH', `data/contacts/${otto._id}`, { name: 'x' }), 'DOCUMENT_NOT_FOUND');
assert.equal(await call(anna, 'PATCH', `data/contacts/${otto._id}`, { firm: pine }), 'FIELD_FIXED');

console.log('walked');
