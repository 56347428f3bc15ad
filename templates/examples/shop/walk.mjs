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

const [cleo, sue] = [await signUp('cleo'), await signUp('sue', ['staff'])];

const tea = await call(sue, 'POST', 'data/products', { name: 'Tea', price: 4, stock: 3, cost: 1 });
assert.equal((await call(null, 'GET', `data/products/${tea._id}`)).cost, undefined);
assert.equal(await call(cleo, 'PATCH', `data/products/${tea._id}`, { price: 0 }), 'RULE_REFUSED');

// A customer orders and changes the order; what is paid, and what is left, is for the staff to say.
const order = await call(cleo, 'POST', 'data/orders', { product: tea._id, count: 1 });
await call(cleo, 'PATCH', `data/orders/${order._id}`, { count: 2 });
assert.equal(await call(cleo, 'PATCH', `data/orders/${order._id}`, { status: 'paid' }), 'RULE_REFUSED');
// What is sold leaves the stock: both or neither, so that no more is sold than there is.
const sell = ({ _id, count }) =>
  call(sue, 'POST', 'batch', {
    operations: [
      { op: 'update', collection: 'orders', id: _id, body: { status: 'paid' } },
      { op: 'update', collection: 'products', id: tea._id, body: { $inc: { stock: -count } } },
    ],
  });
await sell({ ...order, count: 2 });
assert.equal(await call(cleo, 'PATCH', `data/orders/${order._id}`, { count: 9 }), 'RULE_REFUSED');
const late = await call(cleo, 'POST', 'data/orders', { product: tea._id, count: 2 });
assert.equal(await sell(late), 'VALIDATION_FAILED');
assert.equal((await call(cleo, 'GET', `data/orders/${late._id}`)).status, 'placed');
assert.equal((await call(null, 'GET', `data/products/${tea._id}`)).stock, 1);

console.log('walked');
