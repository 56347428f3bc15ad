// Own code of the example: what only a server may decide. bsvc runs it in a process of its own.
import { createHmac, timingSafeEqual } from 'node:crypto';

/** The price of a slot is that of its service when it is booked; no client can send one. */
async function priceOf(slot, before, api) {
  if (slot.service === before?.service) return null;
  if (!slot.service) return { price: null };
  const { price } = await api.collection('services').get(slot.service);
  return { price };
}

/** What is booked and not confirmed yet, by day. */
async function digest(api) {
  const { items } = await api.collection('slots').list({ filter: { status: 'asked' }, sort: 'day,time', limit: 100 });
  return items.map(({ day, time, price }) => `${day} ${time}: ${price ?? 0}`).join('\n');
}

export default {
  'slots.update': async ({ document, before, documents, api }) => {
    if (!documents) return { allow: true, set: await priceOf(document, before, api) };
    const each = documents.map((slot) => priceOf(slot.document, slot.before, api));
    return { allow: true, set: await Promise.all(each) };
  },

  // POST /api/run/paid?project=booking, which the payment service calls without a key: it signs the very bytes instead.
  'POST /paid': {
    public: true,
    handle: async ({ request, api }) => {
      const expected = createHmac('sha256', process.env.PAYMENT_SECRET).update(request.rawBody).digest();
      const given = Buffer.from(request.headers['x-signature'] ?? '', 'hex');
      if (given.length !== expected.length || !timingSafeEqual(given, expected))
        return { status: 403, body: 'Not ours' };
      await api.collection('slots').update(request.body.slot, { paid: true });
    },
  },

  // GET /api/run/digest, for managers.
  'GET /digest': async ({ caller, api }) =>
    caller.roles.includes('manager') ? { body: await digest(api) } : { status: 403, body: 'For managers' },

  // By the schedule in bsvc.yaml: stores the same every night.
  nightly: async ({ api }) => {
    await api.collection('digests').insert({ text: await digest(api) });
  },
};
