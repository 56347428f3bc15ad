import { ObjectId } from 'bson';
import { describe, expect, it } from 'vitest';
import { handBackDelivery, noteAttempt } from '../../../src/features/webhooks/deliveries/claim-delivery.js';
import { deliveryStore, type Delivery } from '../../../src/features/webhooks/deliveries/delivery.js';
import { recordAttempt } from '../../../src/features/webhooks/deliveries/record-attempt.js';
import { buildProject } from '../../helpers/build-project.js';
import { buildWebhook } from '../../helpers/build-webhook.js';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp({ settings: { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' } });
const owner = await buildProject(test.app);
const { webhook } = await buildWebhook(test.app, owner.project, 'http://127.0.0.1:9/');

async function place(): Promise<Delivery> {
  const now = new Date(test.app.clock.now());
  const id = new ObjectId().toHexString();
  const delivery: Delivery = {
    ...{ _id: id, projectId: owner.project._id, webhookId: webhook.id, eventId: id, event: 'posts.insert' },
    ...{ collection: 'posts', action: 'insert', documentId: id, lane: id, seq: 1, body: '{}', state: 'pending' },
    ...{
      dueAt: now,
      claims: 3,
      unfinished: 1,
      failures: 0,
      attempts: [],
      createdAt: now,
      updatedAt: now,
      expireAt: now,
    },
  };
  await deliveryStore(test.app).insertOne(delivery);
  return delivery;
}

const outcomeOf = (status: number) => ({
  attempt: { at: new Date(test.app.clock.now()), durationMs: 1, status, response: '', error: null },
  outcome: { status },
});

/** Everything that is written about attempts; false where it was refused. */
const WRITERS: Record<string, (seen: Delivery) => Promise<boolean>> = {
  'the note that an attempt begins': async (seen) => (await noteAttempt(test.app, seen)) !== null,
  'a success': async (seen) => (await recordAttempt(test.app, webhook, seen, outcomeOf(200))) !== null,
  'a failure': async (seen) => (await recordAttempt(test.app, webhook, seen, outcomeOf(500))) !== null,
};
const PAIRS = Object.keys(WRITERS).flatMap((first) => Object.keys(WRITERS).map((second) => [first, second] as const));

describe('of two runs that both believe to be alone with a delivery', () => {
  it.each(PAIRS)('%s goes before %s, which is refused and changes nothing', async (first, second) => {
    const seen = await place();
    expect(await WRITERS[first]!(seen)).toBe(true);
    const after = await deliveryStore(test.app).findOne({ _id: seen._id });
    expect(await WRITERS[second]!(seen)).toBe(false);
    expect(await deliveryStore(test.app).findOne({ _id: seen._id })).toEqual(after);
  });

  it.each(Object.keys(WRITERS))('%s is not undone by the one that hands back what it has seen', async (first) => {
    const seen = await place();
    expect(await WRITERS[first]!(seen)).toBe(true);
    const after = await deliveryStore(test.app).findOne({ _id: seen._id });
    await handBackDelivery(test.app, seen);
    expect(await deliveryStore(test.app).findOne({ _id: seen._id })).toEqual(after);
  });

  it.each(Object.keys(WRITERS))('%s lets one of many at once through', async (name) => {
    const seen = await place();
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => WRITERS[name]!(seen)));
    expect(outcomes.filter((wrote) => wrote)).toHaveLength(1);
  });
});
