// Walks through the example as its users would: BSVC_URL, PUBLISHABLE_KEY and SECRET_KEY say where. Needs nothing else.
import assert from 'node:assert/strict';

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

const [kim, lee, hair] = [await signUp('kim'), await signUp('lee'), await signUp('hair')];
const boss = await signUp('boss', ['manager']);

const service = (await call(boss, 'POST', 'data/services', { name: 'Haircut', minutes: 30, price: 25 }))._id;
const wish = { staff: hair.id, service, at: '2027-01-04T10:00' };
const asked = await call(kim, 'POST', 'data/bookings', wish);
// Nobody is booked twice at a time, and nobody learns by whom.
assert.equal(await call(lee, 'POST', 'data/bookings', wish), 'DUPLICATE_VALUE');
assert.deepEqual(await list(lee, 'bookings', 'at'), []);
await call(hair, 'PATCH', `data/bookings/${asked._id}`, { status: 'confirmed', remark: 'late twice' });
assert.equal((await call(kim, 'GET', `data/bookings/${asked._id}`)).status, 'confirmed');
assert.equal((await call(kim, 'GET', `data/bookings/${asked._id}`)).remark, undefined);
assert.equal(await call(kim, 'PATCH', `data/bookings/${asked._id}`, { status: 'cancelled' }), 'RULE_REFUSED');
assert.deepEqual(await list(boss, 'bookings', 'status'), ['confirmed']);

console.log('walked');
